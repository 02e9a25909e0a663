package schema

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// protobufNative is the definition of a ProtobufNative schema.
//
// Source: ProtobufNativeSchemaData.java.
type protobufNative struct {
	FileDescriptorSet      []byte `json:"fileDescriptorSet"` // base64
	RootMessageTypeName    string `json:"rootMessageTypeName"`
	RootFileDescriptorName string `json:"rootFileDescriptorName"`
}

// rootMessage returns the full name of the message that a ProtobufNative schema describes. Errors: *InvalidError.
//
// Source: ProtobufNativeSchemaDataValidator, ProtobufNativeSchemaUtils.deserialize.
func rootMessage(data []byte) (protoreflect.FullName, error) {
	var definition protobufNative
	if err := json.Unmarshal(data, &definition); err != nil {
		return "", invalidNative("deserialize ProtobufNative Schema failed", err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(definition.FileDescriptorSet, set); err != nil {
		return "", invalidNative("deserialize ProtobufNative Schema failed", err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return "", invalidNative("deserialize ProtobufNative Schema failed", err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(definition.RootMessageTypeName))
	if err != nil {
		return "", invalidNative("rootMessageTypeName", err)
	}
	message, ok := found.(protoreflect.MessageDescriptor)
	if !ok || message.ParentFile().Path() != definition.RootFileDescriptorName {
		return "", invalidNative("rootMessageTypeName", fmt.Errorf("no message of file %.100q", definition.RootFileDescriptorName))
	}
	return message.FullName(), nil
}

func invalidNative(what string, err error) error {
	return &InvalidError{fmt.Sprintf("Invalid schema definition data for PROTOBUF_NATIVE schema: %s: %.500s", what, err)}
}

// checkProtobufNative requires that both describe the same message, by name.
//
// Source: ProtobufNativeSchemaCompatibilityCheck.checkRootMessageChange.
func checkProtobufNative(existing, next []byte) error {
	was, err := rootMessage(existing)
	if err != nil {
		return &IncompatibleError{"the existing schema cannot be read: " + err.Error()}
	}
	is, err := rootMessage(next)
	if err != nil {
		return &IncompatibleError{err.Error()}
	}
	if was != is {
		return &IncompatibleError{fmt.Sprintf("Protobuf root message isn't allow change! It was %s, and is %s", was, is)}
	}
	return nil
}
