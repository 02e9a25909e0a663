package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Exit codes of transactions end.
const (
	exitContrary = 3
	exitNotFound = 4
)

const (
	defaultServiceURL = "pulsar://localhost:6650"
	defaultWebURL     = "http://localhost:8080"
	// operationTimeout bounds one command. Source: ClientConfigurationData.operationTimeoutMs.
	operationTimeout = 30 * time.Second
)

func transactionsCommand() *cobra.Command {
	root := &cobra.Command{Use: "transactions", Short: "List, describe, end and resolve transactions"}
	var c credentials
	c.bind(root)
	root.AddCommand(endCommand(&c), listCommand(&c), describeCommand(&c), resolveCommand(&c))
	return root
}

func endCommand(c *credentials) *cobra.Command {
	var serviceURL, id, action, clientName string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "end --txn-id '(most,least)' --action commit|abort",
		Short: "Ask END_TXN as any client would, and print the outcome",
		Long: `Ask END_TXN as any client would, and print the outcome. Asking again is safe, always.

Exit code 0: it is done as asked; 3: the contrary had happened; 4: not found; 1: anything else, the outcome is not known.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			txnID, err := txn.ParseID(id)
			if err != nil {
				return fmt.Errorf("--txn-id: %w", err)
			}
			wanted, err := parseAction(action)
			if err != nil {
				return err
			}
			dialer, err := c.dialer(serviceURL)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), operationTimeout)
			defer cancel()
			if err := end(ctx, dialer, serviceURL, txnID, wanted, clientName); err != nil {
				return outcomeError(txnID, err)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{"id": txnID.String(), "state": wanted.Decided().String()})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", txnID, wanted.Decided())
			return err
		},
	}
	cmd.Flags().StringVar(&serviceURL, "service-url", defaultServiceURL, "binary service URL, with several hosts if there are several servers")
	cmd.Flags().StringVar(&id, "txn-id", "", "transaction id, (most,least)")
	cmd.Flags().StringVar(&action, "action", "", "commit or abort")
	cmd.Flags().StringVar(&clientName, "client-name", "", "client name to send along (PIP-255); not needed to find an outcome")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of a line")
	requireFlags(cmd, "txn-id", "action")
	return cmd
}

func requireFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is not defined: a fault of this program
		}
	}
}

func parseAction(s string) (txn.Action, error) {
	switch s {
	case "commit":
		return txn.Commit, nil
	case "abort":
		return txn.Abort, nil
	}
	return 0, fmt.Errorf("--action %q: want commit or abort", s)
}

// end asks until there is a definite answer: code 20 and 6 mean that the coordinator moves or loads, a leader that cannot be reached
// that another one is to follow it, and a lost connection that the answer may have been lost. Asking again is what the product is for.
func end(ctx context.Context, dialer wireclient.Dialer, serviceURL string, id txn.ID, action txn.Action, clientName string) error {
	const pause = 200 * time.Millisecond
	for {
		err := endOnce(ctx, dialer, serviceURL, id, action, clientName)
		if err == nil || !worthAsking(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no definite answer within %s: %w", operationTimeout, err)
		case <-time.After(pause):
		}
	}
}

func endOnce(ctx context.Context, dialer wireclient.Dialer, serviceURL string, id txn.ID, action txn.Action, clientName string) error {
	c, err := dialAny(ctx, dialer, serviceURL, id.Most)
	if err != nil {
		return err
	}
	err = c.End(ctx, id, action, clientName)
	return errors.Join(err, c.Close())
}

// dialAny begins at the first host of a service URL that is of use. Clients take several, too: pulsar://one:6650,other:6650.
func dialAny(ctx context.Context, dialer wireclient.Dialer, serviceURL string, tc uint64) (*wireclient.Conn, error) {
	scheme, hosts, found := strings.Cut(serviceURL, "://")
	if !found {
		return dialer.DialTC(ctx, serviceURL, tc)
	}
	var errs []error
	for host := range strings.SplitSeq(hosts, ",") {
		c, err := dialer.DialTC(ctx, scheme+"://"+host, tc)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func worthAsking(err error) bool {
	var answer *wireclient.ServerError
	if errors.As(err, &answer) {
		switch answer.Code {
		case pulsarproto.ServerError_TransactionCoordinatorNotFound, pulsarproto.ServerError_ServiceNotReady,
			pulsarproto.ServerError_TransactionPreserverClosed, pulsarproto.ServerError_TooManyRequests:
			return true
		}
		return false
	}
	return errors.Is(err, wireclient.ErrClosed) || errors.Is(err, wireclient.ErrUnreachable)
}

// outcomeError turns an answer into the exit code that tells it.
func outcomeError(id txn.ID, err error) error {
	var answer *wireclient.ServerError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case pulsarproto.ServerError_InvalidTxnStatus:
		return &exitError{exitContrary, fmt.Errorf("%s: the contrary happened: %s", id, answer.Text)}
	case pulsarproto.ServerError_TransactionNotFound:
		return &exitError{exitNotFound, fmt.Errorf("%s: not found: never opened, another role's, or its outcome is no longer kept", id)}
	}
	return err
}
