package main

import (
	"os"
	"testing"
)

// go generate has been run since the schema, protocompile or protoc-gen-go last changed.
func TestGeneratedGoIsCurrent(t *testing.T) {
	t.Chdir("../..")
	file, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	want, err := goSource(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(goPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from what %s makes: run go generate ./pulsarproto", goPath, schemaPath)
	}
}
