package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// adminFlags are what every command over HTTP takes.
type adminFlags struct {
	credentials *credentials
	url         string
	json        bool
}

func (f *adminFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "admin-url", defaultWebURL, "web service URL")
}

func (f *adminFlags) bindJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON instead of a table")
}

func listCommand(c *credentials) *cobra.Command {
	flags := adminFlags{credentials: c}
	var olderThan time.Duration
	var state, clientName string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List transactions that have not ended, of all instances",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > admin.MaxListLimit {
				return fmt.Errorf("--limit %d: want a number from 1 to %d", limit, admin.MaxListLimit)
			}
			query := url.Values{"limit": {fmt.Sprint(limit)}, "olderThan": {olderThan.String()}}
			if state != "" {
				query.Set("state", state)
			}
			if clientName != "" {
				query.Set("clientName", clientName)
			}
			found, err := flags.listAll(cmd.Context(), query, limit)
			if err != nil && len(found) == 0 {
				return err
			}
			if flags.json {
				return errors.Join(printJSON(cmd.OutOrStdout(), found), err)
			}
			return errors.Join(printList(cmd.OutOrStdout(), found), err)
		},
	}
	flags.bind(cmd)
	flags.bindJSON(cmd)
	cmd.Flags().DurationVar(&olderThan, "older-than", 0, "only those opened at least so long ago, for example 5m")
	cmd.Flags().StringVar(&state, "state", "", "only those in this state: OPEN, COMMITTING or ABORTING")
	cmd.Flags().StringVar(&clientName, "client-name", "", "only those of this client name")
	cmd.Flags().IntVar(&limit, "limit", 1000, "at most so many")
	return cmd
}

func describeCommand(c *credentials) *cobra.Command {
	flags := adminFlags{credentials: c}
	cmd := &cobra.Command{
		Use:   "describe '(most,least)'",
		Short: "Show one transaction, live or ended, and what it waits for",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := txn.ParseID(args[0])
			if err != nil {
				return err
			}
			var found admin.Transaction
			if err := flags.call(cmd.Context(), http.MethodGet, fmt.Sprintf("/%d/%d", id.Most, id.Least), nil, &found); err != nil {
				return err
			}
			if flags.json {
				return printJSON(cmd.OutOrStdout(), found)
			}
			return printTransaction(cmd.OutOrStdout(), &found)
		},
	}
	flags.bind(cmd)
	flags.bindJSON(cmd)
	return cmd
}

func resolveCommand(c *credentials) *cobra.Command {
	flags := adminFlags{credentials: c}
	var participant, subscription string
	cmd := &cobra.Command{
		Use:   "resolve '(most,least)' --participant TOPIC [--subscription NAME]",
		Short: "Declare a participant gone, so that a transaction that waits for it can end",
		Long: `Declare a participant gone, so that a decided transaction that waits for it can end. Nothing is undone and nothing is
applied there: use it only for a topic or subscription that no longer exists. Who did it is written to the log.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := txn.ParseID(args[0])
			if err != nil {
				return err
			}
			body := admin.Resolution{Topic: participant, Subscription: subscription, Operator: operator()}
			path := fmt.Sprintf("/%d/%d/resolve", id.Most, id.Least)
			if err := flags.call(cmd.Context(), http.MethodPost, path, body, nil); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is declared done\n", id, participant)
			return err
		},
	}
	flags.bind(cmd)
	cmd.Flags().StringVar(&participant, "participant", "", "full name of the topic")
	cmd.Flags().StringVar(&subscription, "subscription", "", "subscription of the topic, if the participant is one")
	requireFlags(cmd, "participant")
	return cmd
}

// operator is whom the audit names.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

const (
	// askedAtOnce is how many instances are asked for their lists at the same time.
	askedAtOnce = 16
	// listTimeout bounds the wait for the list of one instance, which gives up on a coordinator after 5 s.
	listTimeout = 10 * time.Second
)

// listAll asks every instance that shares the store for the transactions of the coordinators it leads, and returns at most limit.
// They are asked at the same time, some of many. An error tells what is missing from the list.
func (f *adminFlags) listAll(ctx context.Context, query url.Values, limit int) ([]admin.Transaction, error) {
	found := []admin.Transaction{}
	addresses, missing := f.instances(ctx)
	led, failed := make([][]admin.Transaction, len(addresses)), make([]error, len(addresses))
	var asked sync.WaitGroup
	tokens := make(chan struct{}, askedAtOnce)
	for n, address := range addresses {
		tokens <- struct{}{}
		asked.Go(func() {
			defer func() { <-tokens }()
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			instance := *f
			instance.url = address
			if err := instance.call(ctx, http.MethodGet, "?"+query.Encode(), nil, &led[n]); err != nil {
				failed[n] = fmt.Errorf("the list lacks what %s leads: %w", address, err)
			}
		})
	}
	asked.Wait()
	for n := range addresses {
		found = append(found, led[n]...)
		missing = errors.Join(missing, failed[n])
	}
	return found[:min(limit, len(found))], missing
}

// instances are the web service URLs of all processes that share the store of the one at --admin-url; that one is first. An error
// names those that have none.
func (f *adminFlags) instances(ctx context.Context) ([]string, error) {
	addresses := []string{f.url}
	var health admin.Health
	if err := f.ask(ctx, http.MethodGet, "/health", nil, func(answer *http.Response) error {
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
			return failureOf(answer)
		}
		return json.NewDecoder(answer.Body).Decode(&health)
	}); err != nil {
		return nil, fmt.Errorf("which instances there are: %w", err)
	}
	var missing error
	for i := range health.Instances {
		instance := &health.Instances[i]
		if instance.Self {
			continue
		}
		address := cmp.Or(instance.WebURL, instance.WebURLTLS)
		if strings.HasPrefix(f.url, "https:") {
			address = instance.WebURLTLS
		}
		if address == "" {
			missing = errors.Join(missing, fmt.Errorf("the list lacks what %s leads: it has no web service URL to ask",
				cmp.Or(instance.ServiceURLTLS, instance.ServiceURL, instance.ID)))
			continue
		}
		addresses = append(addresses, address)
	}
	return addresses, missing
}

// call asks for transactions and decodes the answer into result, unless that is nil.
func (f *adminFlags) call(ctx context.Context, method, path string, body, result any) error {
	return f.ask(ctx, method, "/pulsar-tc/v1/transactions"+path, body, func(answer *http.Response) error {
		if answer.StatusCode >= http.StatusBadRequest {
			return failureOf(answer)
		}
		if result == nil {
			return nil
		}
		return json.NewDecoder(answer.Body).Decode(result)
	})
}

// ask sends a request to the web service, and has read read the answer.
func (f *adminFlags) ask(ctx context.Context, method, path string, body any, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(f.url, "http://") && !strings.HasPrefix(f.url, "https://") {
		return fmt.Errorf("--admin-url %q: want http://host:port or https://host:port", f.url)
	}
	request, err := http.NewRequestWithContext(ctx, method, f.url+path, &content)
	if err != nil {
		return err
	}
	answer, err := f.credentials.do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return read(answer)
}

func failureOf(answer *http.Response) error {
	var failure admin.Failure
	if err := json.NewDecoder(answer.Body).Decode(&failure); err != nil || failure.Reason == "" {
		return fmt.Errorf("the web service answered %s", answer.Status)
	}
	if answer.StatusCode == http.StatusNotFound {
		return &exitError{exitNotFound, fmt.Errorf("%s", failure.Reason)}
	}
	return fmt.Errorf("the web service answered %s: %s", answer.Status, failure.Reason)
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

func printList(w io.Writer, found []admin.Transaction) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(w, "no live transaction fits")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tAGE\tDEADLINE\tOWNER\tCLIENT NAME\tPARTICIPANTS\tWAITING FOR")
	for i := range found {
		t := &found[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", t.ID, t.State, time.Since(t.OpenedAt).Round(time.Second),
			inTime(t.DeadlineAt), dash(t.Owner), dash(t.ClientName), len(t.Participants), waitingFor(t))
	}
	return table.Flush()
}

func inTime(at time.Time) string {
	d := time.Until(at).Round(time.Second)
	if d < 0 {
		return "passed " + (-d).String() + " ago"
	}
	return "in " + d.String()
}

func dash(s string) string { return cmp.Or(s, "-") }

// waitingFor says what keeps the transaction from ending, or names the first participant that has not applied the decision, and how
// many more there are.
func waitingFor(t *admin.Transaction) string {
	if t.Reason != "" {
		return t.Reason
	}
	first, more := "", 0
	for i := range t.Participants {
		p := &t.Participants[i]
		if p.State != "waiting" {
			continue
		}
		if first == "" {
			first = p.Topic
			if p.Failure != "" {
				first += " (" + p.Failure + ")"
			}
			continue
		}
		more++
	}
	if more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	return dash(first)
}

func printTransaction(w io.Writer, t *admin.Transaction) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "id\t%s\nstate\t%s\nowner\t%s\nclient name\t%s\nopened\t%s\ntimeout\t%s\n", t.ID, t.State, dash(t.Owner),
		dash(t.ClientName), t.OpenedAt.Format(time.RFC3339Nano), time.Duration(t.TimeoutMillis)*time.Millisecond)
	if t.EndedAt != nil {
		fmt.Fprintf(table, "ended\t%s\n", t.EndedAt.Format(time.RFC3339Nano))
	} else {
		fmt.Fprintf(table, "deadline\t%s (%s)\n", t.DeadlineAt.Format(time.RFC3339Nano), inTime(t.DeadlineAt))
	}
	if t.TimedOut {
		fmt.Fprintln(table, "decided by\tits deadline")
	}
	if t.Reason != "" {
		fmt.Fprintf(table, "waiting for\t%s\n", t.Reason)
	}
	if err := table.Flush(); err != nil || len(t.Participants) == 0 {
		return err
	}
	fmt.Fprintln(w)
	table = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PARTICIPANT\tSUBSCRIPTION\tSTATE\tATTEMPTS\tLAST FAILURE")
	for i := range t.Participants {
		p := &t.Participants[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", p.Topic, dash(p.Subscription), p.State, p.Attempts, dash(p.Failure))
	}
	return table.Flush()
}
