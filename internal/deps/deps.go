package deps
import (
 _ "go.etcd.io/etcd/server/v3/embed"
 _ "go.etcd.io/etcd/client/v3"
 _ "google.golang.org/protobuf/proto"
 _ "github.com/rs/zerolog"
 _ "github.com/prometheus/client_golang/prometheus"
 _ "github.com/prometheus/client_golang/prometheus/promhttp"
 _ "github.com/spf13/cobra"
 _ "github.com/magiconair/properties"
 _ "github.com/apache/pulsar-client-go/pulsar"
 _ "github.com/anishathalye/porcupine"
 _ "pgregory.net/rapid"
 _ "go.uber.org/goleak"
 _ "github.com/bufbuild/protocompile"
 _ "golang.org/x/sys/unix"
 _ "golang.org/x/term"
)
