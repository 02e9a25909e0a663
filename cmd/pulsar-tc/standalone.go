package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/server"
)

func standaloneCommand() *cobra.Command {
	var file, dataDir string
	var set []string
	cmd := &cobra.Command{
		Use:   "standalone",
		Short: "Run coordinator, topics and store in this process",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), sources(file, dataDir, set))
		},
	}
	bindSources(cmd, &file, &set)
	bindDataDir(cmd, &dataDir)
	return cmd
}

func coordinatorCommand() *cobra.Command {
	var file string
	var set []string
	cmd := &cobra.Command{
		Use:   "coordinator",
		Short: "Run coordinators and topics in this process and others, on the etcd cluster that metadataStoreUrl names",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from := sources(file, "", set)
			from.NeedsEtcd = true
			return serve(cmd.Context(), from)
		},
	}
	bindSources(cmd, &file, &set)
	return cmd
}

// serve runs a server until ctx is done or its store fails.
func serve(ctx context.Context, sources conf.Sources) error {
	began := time.Now()
	server.TuneCollection()
	log := newLog()
	config, report, err := conf.Load(sources)
	if err != nil {
		return err
	}
	report.Log(log)
	srv, err := server.Start(ctx, server.Options{Config: config, Version: version, Log: log})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, readyLine(srv, config, report, time.Since(began)))
	select {
	case <-ctx.Done():
		log.Info().Msg("stopping; a second signal ends at once")
	case err = <-srv.Failed():
	}
	stop, cancel := context.WithTimeout(context.Background(), config.BrokerShutdownTimeout)
	defer cancel()
	if closed := srv.Close(stop); err == nil {
		err = closed
	}
	return err
}

// readyLine is the one line that says that clients may come.
func readyLine(srv *server.Server, config *conf.Config, report *conf.Report, took time.Duration) string {
	line := fmt.Sprintf("pulsar-tc %s ready in %d ms: %s %s", version, took.Milliseconds(), strings.Join(srv.URLs(), " "), storeOf(config))
	if !config.TransactionCoordinatorEnabled {
		line += fmt.Sprintf("; transactions are OFF (transactionCoordinatorEnabled=false, from %s; --set transactionCoordinatorEnabled=true turns them on)",
			report.Origin("transactionCoordinatorEnabled"))
	}
	return line
}

func storeOf(config *conf.Config) string {
	if endpoints := config.EtcdEndpoints(); endpoints != nil {
		return "etcd " + strings.Join(endpoints, ",")
	}
	return "data " + config.DataDir
}

// newLog writes JSON, or lines for people where stderr is a terminal.
func newLog() zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	if term.IsTerminal(int(os.Stderr.Fd())) {
		return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}).With().Timestamp().Logger().Level(zerolog.InfoLevel)
	}
	return zerolog.New(os.Stderr).With().Timestamp().Logger().Level(zerolog.InfoLevel)
}
