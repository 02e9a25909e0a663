// Command generate compiles pulsar_api.proto of the working directory and writes pulsar_api.pb.go beside it. It needs
// no protoc: protocompile parses, and protoc-gen-go's own library writes the Go.
package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	schemaPath     = "pulsar_api.proto"
	goPath         = "pulsar_api.pb.go"
	registeredPath = "pulsartc/pulsar_api.proto" // its name in the process-wide protobuf registry
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate() error {
	file, err := compile()
	if err != nil {
		return fmt.Errorf("compile %s: %w", schemaPath, err)
	}
	content, err := goSource(file)
	if err != nil {
		return fmt.Errorf("write the Go of %s: %w", schemaPath, err)
	}
	return os.WriteFile(goPath, []byte(content), 0o644)
}

func compile() (*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{Accessor: openSchema},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), registeredPath)
	if err != nil {
		return nil, err
	}
	return protoutil.ProtoFromFileDescriptor(files[0]), nil
}

// openSchema finds nothing else, so that descriptor.proto, which every file depends on, comes from the compiler.
func openSchema(path string) (io.ReadCloser, error) {
	if path != registeredPath {
		return nil, fs.ErrNotExist
	}
	return os.Open(schemaPath)
}

func goSource(file *descriptorpb.FileDescriptorProto) (string, error) {
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{registeredPath},
		ProtoFile:      []*descriptorpb.FileDescriptorProto{file},
		Parameter:      proto.String("paths=source_relative"),
	})
	if err != nil {
		return "", err
	}
	internal_gengo.GenerateFile(plugin, plugin.FilesByPath[registeredPath])
	response := plugin.Response()
	if response.Error != nil {
		return "", fmt.Errorf("protoc-gen-go: %s", response.GetError())
	}
	return response.File[0].GetContent(), nil
}
