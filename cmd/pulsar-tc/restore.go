package main

import (
	"fmt"
	"os"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/server"
)

func restoreCommand() *cobra.Command {
	var file, dataDir string
	var set []string
	var idFloor uint64
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Put a backup of the data directory in place, so that no transaction id is handed out twice",
		Long: `Copy BACKUP, which is a copy of a data directory, into the data directory, which must not hold a store yet.

Ids go on from the clock. If the clock is behind the ids of the backup the command refuses: correct the clock, or give
--id-floor, a number above every id that was handed out.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, _, err := conf.Load(sources(file, dataDir, set))
			if err != nil {
				return err
			}
			options := server.Options{Config: config, Version: version, Log: zerolog.Nop()}
			if err := server.Restore(cmd.Context(), options, args[0], idFloor); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %s into %s\n", args[0], config.DataDir)
			return err
		},
	}
	bindSources(cmd, &file, &set)
	bindDataDir(cmd, &dataDir)
	cmd.Flags().Uint64Var(&idFloor, "id-floor", 0, "number above every id handed out since the backup; only where the clock is wrong")
	return cmd
}

// bindSources adds the flags that say where settings come from.
func bindSources(cmd *cobra.Command, file *string, set *[]string) {
	cmd.Flags().StringVar(file, "config", "", "broker.conf, standalone.conf or proxy.conf to read")
	cmd.Flags().StringArrayVar(set, "set", nil, "key=value that wins over file and environment; may be repeated")
}

func bindDataDir(cmd *cobra.Command, dataDir *string) {
	cmd.Flags().StringVar(dataDir, "data-dir", "", "directory of the store (default ./data)")
}

func sources(file, dataDir string, set []string) conf.Sources {
	if dataDir != "" {
		set = append([]string{"dataDir=" + dataDir}, set...)
	}
	return conf.Sources{File: file, Environ: os.Environ(), Set: set}
}
