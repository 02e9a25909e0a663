package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is the suite. Its tests of version v0.21.0 are those that testdata/tests.tsv lists.
const module = "github.com/apache/pulsar-client-go@v0.21.0"

// suite is a writable copy of the module with built tests. The tests write key files beside themselves.
type suite struct {
	dir string
}

// fetch copies the module below dir.
func fetch(ctx context.Context, dir string) (suite, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir = dir // outside of any module
	output, err := download.Output()
	if err != nil {
		return suite{}, fmt.Errorf("go mod download %s: %w: %s", module, err, output)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return suite{}, fmt.Errorf("go mod download %s: %w", module, err)
	}
	s := suite{dir: suiteDir(dir)}
	if err := os.CopyFS(s.dir, os.DirFS(found.Dir)); err != nil {
		return suite{}, fmt.Errorf("copy %s: %w", module, err)
	}
	return s, filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
}

func suiteDir(dir string) string { return filepath.Join(dir, "suite") }

// build compiles the tests of a package. The directory of the module is the working directory, for its go.mod.
func (s suite) build(ctx context.Context, pkg string) error {
	command := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary(pkg), "./"+pkg)
	command.Dir = s.dir
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, bytes.TrimSpace(output))
	}
	return nil
}

func (s suite) binary(pkg string) string {
	return filepath.Join(s.dir, filepath.Base(pkg)+".test")
}

func (s suite) file(elements ...string) string {
	return filepath.Join(append([]string{s.dir, "integration-tests"}, elements...)...)
}
