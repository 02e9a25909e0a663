package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unconditional are the packages that write to etcd without a condition, with the reason why that cannot overwrite what another
// process, or a delayed request, has written meanwhile.
var unconditional = map[string]string{
	"cluster":   "the record of a process, under its own id and session lease",
	"etcdstore": "care of the embedded store itself",
	"server":    "a restore, before anybody serves",
	"topic":     "deletes what is left of deleted topics, whose ledger ids never come back",
}

// inspectProduct calls visit for every node of every file of the product that knows an etcd client.
func inspectProduct(t *testing.T, visit func(name, path string, node ast.Node)) {
	t.Helper()
	files := 0
	for name, p := range loadModule(t) {
		if matches(kits, name) {
			continue
		}
		for _, file := range p.files {
			path := filepath.Join(p.dir, file)
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if !knowsEtcd(parsed) {
				continue
			}
			files++
			ast.Inspect(parsed, func(node ast.Node) bool {
				visit(name, path, node)
				return true
			})
		}
	}
	if files < 10 {
		t.Fatalf("only %d files know an etcd client: the walk is wrong", files)
	}
}

func knowsEtcd(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		return strings.HasPrefix(spec.Path.Value, `"go.etcd.io/etcd/client/v3`)
	})
}

// A serializable read is answered from the state of one member, which may be cut off and know nothing of the newest terms,
// decisions and owners. Nothing in the product may rest on one.
func TestNoSerializableRead(t *testing.T) {
	inspectProduct(t, func(_, path string, node ast.Node) {
		if readsSerializably(node) {
			t.Errorf("%s reads serializably: an answer must not rest on what one member thinks", path)
		}
	})
}

func readsSerializably(node ast.Node) bool {
	selector, ok := node.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "WithSerializable"
}

// Every write is a transaction with a condition, so that it is refused when what it rests on is gone.
func TestWritesAreConditional(t *testing.T) {
	found := map[string]bool{}
	inspectProduct(t, func(name, path string, node ast.Node) {
		call := unconditionalWrite(node)
		if call == "" {
			return
		}
		found[name] = true
		if unconditional[name] == "" {
			t.Errorf("%s writes without a condition: %s", path, call)
		}
	})
	for name := range unconditional {
		if !found[name] {
			t.Errorf("%s writes nothing without a condition: take it off the list", name)
		}
	}
}

// unconditionalWrite names the call by which node writes to etcd without a condition: Put or Delete of a client, or a transaction
// without If; "" if it does not.
func unconditionalWrite(node ast.Node) string {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch method.Sel.Name {
	case "Put", "Delete", "Do":
		if client := lastName(method.X); slices.Contains([]string{"kv", "KV", "client", "Client"}, client) {
			return client + "." + method.Sel.Name
		}
	case "Then":
		if of, ok := method.X.(*ast.CallExpr); ok && lastName(of.Fun) == "Txn" {
			return "Txn without If"
		}
	}
	return ""
}

// lastName is the identifier that an expression ends with.
func lastName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

// The rules would be worth nothing if they saw nothing.
func TestEtcdRulesSee(t *testing.T) {
	const source = `package x
import clientv3 "go.etcd.io/etcd/client/v3"
func f() {
	s.kv.Put(ctx, "a", "b")
	o.Client().Delete(ctx, "a")
	kv.Txn(ctx).Then(op).Commit()
	kv.Txn(ctx).If(c).Then(op).Commit()
	kv.Get(ctx, "a", clientv3.WithSerializable())
	m.Delete("a")
}`
	parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	serializable := 0
	ast.Inspect(parsed, func(node ast.Node) bool {
		if call := unconditionalWrite(node); call != "" {
			writes = append(writes, call)
		}
		if readsSerializably(node) {
			serializable++
		}
		return true
	})
	if want := []string{"kv.Put", "Client.Delete", "Txn without If"}; !slices.Equal(writes, want) || serializable != 1 || !knowsEtcd(parsed) {
		t.Errorf("seen: %q and %d serializable reads", writes, serializable)
	}
}
