// Command bench measures the speed and memory of the whole product, beside what the store alone can do on the same machine
// in the same run, and beside a real Pulsar if there is one. It prints a table and ends with 0 whatever the figures are:
// compare ratios, not runs.
//
// Ceiling A is the etcd transactions that the server committed in the measured time, committed again one after another on
// an equal store with the same compares, operations and bytes. Ceiling B is one put for each of them with as many bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/server"
)

// suite is one run of the benchmarks.
type suite struct {
	binary string // the product, built
	long   bool
}

// rows are the measurements, in the order of the table.
var rows = []struct {
	name    string
	measure func(context.Context, *suite) ([]line, error)
}{
	{"new-end", newEndAtOnce},
	{"new-end-alone", newEndAlone},
	{"new-end-cluster", newEndOnCluster},
	{"failover", failover},
	{"hand-over", handOver},
	{"coordinators", coordinators},
	{"end-repeated", endRepeated},
	{"open", openTransactions},
	{"preserved", preservedOutcomes},
	{"idle", idle},
	{"forgotten", forgotten},
	{"send", sendByClients}, // late: an official client keeps some memory of each transaction until its timeout
	{"topics", topicsInUse},
	{"plain", publishPlain},
	{"transform", transform},
	{"pulsar", besidePulsar},
	{"java-send", javaSendsBesidePulsar},
}

func main() {
	server.TuneCollection() // as the product's command does: this process has servers
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	names := ""
	for _, row := range rows {
		names += " " + row.name
	}
	only := flag.String("only", "", "regular expression of the rows to measure, of:"+names)
	long := flag.Bool("long", false, "NEW+END for a minute, and 3 M transactions with defaults")
	output := flag.String("json", "", "file to write the figures to")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var lines []line
	err = inDirectory(func(dir string) (err error) {
		lines, err = measureRows(ctx, chosen, *long, dir)
		return err
	})
	fmt.Printf("%s, %d CPUs, %s/%s\n\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	err = errors.Join(err, printTable(os.Stdout, lines))
	if *output != "" {
		err = errors.Join(err, writeJSON(*output, lines))
	}
	return err
}

// measureRows measures the rows that chosen matches. A row that fails becomes a line that says so.
func measureRows(ctx context.Context, chosen *regexp.Regexp, long bool, dir string) ([]line, error) {
	binary, err := process.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	s := &suite{binary: binary, long: long}
	var all []line
	for _, row := range rows {
		if !chosen.MatchString(row.name) {
			continue
		}
		began := time.Now()
		lines, err := row.measure(ctx, s)
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if err != nil {
			lines = []line{{What: row.name, Verdict: "failed: " + err.Error()}}
		}
		fmt.Fprintf(os.Stderr, "measured %s in %d s\n", row.name, int(time.Since(began).Seconds()))
		all = append(all, lines...)
	}
	return all, nil
}
