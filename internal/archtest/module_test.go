package archtest

import (
	"errors"
	"go/build"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/pulsar-tc/pulsar-tc/"

// pkg is one package of the module, without its tests.
type pkg struct {
	name    string // path below the module
	dir     string
	files   []string
	imports []string // ours without the module's prefix
}

// loadModule reads every package of the module, keyed by its path below it.
func loadModule(t *testing.T) map[string]pkg {
	t.Helper()
	root := filepath.Join("..", "..")
	packages := map[string]pkg{}
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); dir != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		found, err := build.ImportDir(dir, 0)
		var none *build.NoGoError
		if errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		p := pkg{name: filepath.ToSlash(below), dir: dir, files: found.GoFiles}
		for _, imported := range found.Imports {
			p.imports = append(p.imports, strings.TrimPrefix(imported, module))
		}
		packages[p.name] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Fatalf("only %d packages found: the walk is wrong", len(packages))
	}
	return packages
}

// closure returns p and every package of ours that it imports, directly or not.
func closure(packages map[string]pkg, name string) []pkg {
	seen := map[string]bool{name: true}
	queue := []string{name}
	var all []pkg
	for len(queue) > 0 {
		p := packages[queue[0]]
		queue = queue[1:]
		all = append(all, p)
		for _, imported := range p.imports {
			if _, ours := packages[imported]; ours && !seen[imported] {
				seen[imported] = true
				queue = append(queue, imported)
			}
		}
	}
	return all
}

// matches reports that name fits one of the patterns of path.Match; "..." at the end takes everything below.
func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if below, ok := strings.CutSuffix(pattern, "/..."); ok && strings.HasPrefix(name, below+"/") {
			return true
		}
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}
