package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pulsar-tc/pulsar-tc/conf"
)

func confCommand() *cobra.Command {
	root := &cobra.Command{Use: "conf", Short: "Work with configuration files"}
	root.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Check a broker.conf, standalone.conf or proxy.conf and show what it sets here",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return conf.Check(cmd.OutOrStdout(), conf.Sources{File: args[0], Environ: os.Environ()})
		},
	})
	return root
}
