// Command outcomes prints how the last transactions of each client name ended, as a table. It reads the topic that pulsar-tc
// keeps for that with the stock Go client; docs/terminated-txn-state.md describes the messages.
//
//	go run ./examples/outcomes -url pulsar://localhost:6650
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

func main() {
	url := flag.String("url", "pulsar://localhost:6650", "service URL")
	coordinator := flag.Uint64("coordinator", 0, "number of the transaction coordinator")
	follow := flag.Bool("follow", false, "print the table again after each change, until interrupted")
	token := flag.String("token-file", "", "file with the JSON Web Token of a super user, where the server wants one")
	trust := flag.String("tls-trust-certs", "", "authorities of the server's certificate, PEM, for a pulsar+ssl URL")
	flag.Parse()
	options := pulsar.ClientOptions{
		URL: *url, TLSTrustCertsFilePath: *trust, Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler)),
	}
	if *token != "" {
		options.Authentication = pulsar.NewAuthenticationTokenFromFile(*token)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, options, *coordinator, *follow, os.Stdout); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// state is the value of one message. Fields that are not shown here are left out.
type state struct {
	Version  int `json:"version"`
	Outcomes []struct {
		Txn      string `json:"txn"`
		Outcome  string `json:"outcome"`
		TimedOut bool   `json:"timed_out"`
		Ended    int64  `json:"ended_ms"`
	} `json:"outcomes"`
}

// run reads what there is, prints it, and goes on if it is to follow.
func run(ctx context.Context, options pulsar.ClientOptions, coordinator uint64, follow bool, out io.Writer) error {
	client, err := pulsar.NewClient(options)
	if err != nil {
		return err
	}
	defer client.Close()
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic:          fmt.Sprintf("persistent://pulsar/system/__terminated_txn_state_%d", coordinator),
		StartMessageID: pulsar.EarliestMessageID(),
		ReadCompacted:  true,
	})
	if err != nil {
		return err
	}
	defer reader.Close()
	names := map[string]state{}
	for {
		for reader.HasNext() {
			if err := take(ctx, reader, names); err != nil {
				return err
			}
		}
		if err := table(out, names); err != nil || !follow {
			return err
		}
		if err := take(ctx, reader, names); err != nil { // waits for a change
			return err
		}
	}
}

// take reads one message into names: the newest message of a name replaces what was known of it, and one without payload says
// that nothing is kept of it any more.
func take(ctx context.Context, reader pulsar.Reader, names map[string]state) error {
	message, err := reader.Next(ctx)
	if err != nil {
		return err
	}
	if len(message.Payload()) == 0 {
		delete(names, message.Key())
		return nil
	}
	var s state
	if err := json.Unmarshal(message.Payload(), &s); err != nil {
		return fmt.Errorf("outcomes of %q: %w", message.Key(), err)
	}
	if s.Version != 1 {
		return fmt.Errorf("outcomes of %q: version %d, this program knows 1", message.Key(), s.Version)
	}
	names[message.Key()] = s
	return nil
}

func table(out io.Writer, names map[string]state) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENT NAME\tTRANSACTION\tOUTCOME\tENDED")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, o := range names[name].Outcomes {
			outcome := o.Outcome
			if o.TimedOut {
				outcome += " (timed out)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, o.Txn, outcome, time.UnixMilli(o.Ended).UTC().Format(time.RFC3339))
		}
	}
	return w.Flush()
}
