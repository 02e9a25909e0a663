package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

// insideKey is the environment variable that tells the program that it runs in its own network namespace already.
const insideKey = "PULSAR_TC_CONFORMANCE_INSIDE"

var errNotIsolated = errors.New("the system gives no network namespace")

func main() {
	var (
		dir    = flag.String("dir", "", "scratch `directory`, empty or left by a prepared run; needed")
		binary = flag.String("server", "", "the server's `binary`; built if empty")
		tiers  = flag.String("tiers", "T1 core,T1 extended,T2,T3,admin", "what to run, in this order, separated by commas")
		only   = flag.String("run", "", "run only these tests, separated by commas, whatever their tier")
		broken = flag.Bool("v", false, "print the whole output of tests that fail")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := conformance{dir: *dir, binary: *binary, tiers: strings.Split(*tiers, ","), verbose: *broken}
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	code, err := c.main(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		code = 2
	}
	os.Exit(code)
}

type conformance struct {
	dir, binary string
	tiers, only []string
	verbose     bool
	suite       suite
}

// main prepares what needs the network, then goes on without it.
func (c *conformance) main(ctx context.Context) (int, error) {
	if c.dir == "" {
		return 2, errors.New("-dir is needed")
	}
	c.suite = suite{dir: suiteDir(c.dir)}
	if os.Getenv(insideKey) != "" {
		if err := raiseLoopback(); err != nil {
			return 2, err
		}
		return c.measure(ctx)
	}
	if err := c.prepare(ctx); err != nil {
		return 2, err
	}
	code, err := isolate()
	if errors.Is(err, errNotIsolated) {
		return c.measure(ctx)
	}
	return code, err
}

// measure runs the groups that were asked for against one server and prints what became of them.
func (c *conformance) measure(ctx context.Context) (int, error) {
	all, err := listed()
	if err != nil {
		return 2, err
	}
	binary := c.binary
	if binary == "" {
		binary = c.dir + "/pulsar-tc"
	}
	server, err := startServer(ctx, binary, c.dir, c.suite)
	if err != nil {
		return 2, err
	}
	report := newReport(c.verbose)
	for _, g := range groups {
		tests := slices.DeleteFunc(slices.Clone(all), func(t test) bool {
			if len(c.only) > 0 {
				return !g.has(t) || !slices.Contains(c.only, t.name)
			}
			return !g.has(t) || !slices.Contains(c.tiers, g.title)
		})
		if len(tests) == 0 {
			continue
		}
		fmt.Printf("-- %s: %d tests\n", g.title, len(tests))
		results, err := c.suite.run(ctx, tests[0].pkg, names(tests))
		if err != nil {
			return 2, errors.Join(err, server.Kill())
		}
		if err := c.again(ctx, tests, results); err != nil {
			return 2, errors.Join(err, server.Kill())
		}
		report.add(g, tests, results)
	}
	if err := server.Kill(); err != nil {
		return 2, err
	}
	return report.print(len(c.only) > 0), nil
}

func names(tests []test) []string {
	var out []string
	for _, t := range tests {
		out = append(out, t.name)
	}
	return out
}

// prepare makes the suite, its tests and the server, unless an earlier run left them.
func (c *conformance) prepare(ctx context.Context) error {
	if c.binary == "" {
		if _, err := process.Build(ctx, c.dir); err != nil {
			return err
		}
	}
	if _, err := os.Stat(c.suite.binary(adminPackage)); err == nil {
		return nil
	}
	s, err := fetch(ctx, c.dir)
	if err != nil {
		return err
	}
	for _, pkg := range []string{clientPackage, adminPackage} {
		if err := s.build(ctx, pkg); err != nil {
			return err
		}
	}
	return nil
}
