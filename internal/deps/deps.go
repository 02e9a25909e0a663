package deps

import (
	_ "github.com/anishathalye/porcupine"
	_ "github.com/apache/pulsar-client-go/pulsar"
	_ "github.com/bufbuild/protocompile"
	_ "github.com/magiconair/properties"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rs/zerolog"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/client/v3"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "google.golang.org/protobuf/proto"
	_ "pgregory.net/rapid"
)
