package etcdstore_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// refusedWith requires that the error of a start says each of want.
func refusedWith(t *testing.T, options etcdstore.ClusterOptions, want ...string) {
	t.Helper()
	err := connectError(t, options)
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: does not say %q", err, text)
		}
	}
}

// Endpoints where no etcd is are refused, each with its reason.
func TestWrongEndpoints(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed := "http://" + loopback.Address(t)
	mute := "http://" + silent.Addr().String()
	options := optionsFor(closed, web.URL, mute)
	options.Patience = time.Second
	refusedWith(t, options, "no endpoint of etcd answers", closed+": ", "connection refused", web.URL+": ", mute+": ")
}

// TLS: what is wrong with it is said, not only that nobody answers.
func TestTLSFaults(t *testing.T) {
	t.Parallel()
	authority, stranger := certtest.NewAuthority(t), certtest.NewAuthority(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	server := certtest.Write(t, authority.Sign(t, "etcd", tomorrow, "localhost"), authority)
	secure := etcdtest.Serve(t, "https", func(cfg *embed.Config) {
		cfg.ClientTLSInfo.CertFile, cfg.ClientTLSInfo.KeyFile, cfg.ClientTLSInfo.TrustedCAFile = server.Certificate, server.Key, server.Trust
		cfg.ClientTLSInfo.ClientCertAuth = true
	})
	plain := etcdtest.Serve(t, "http", nil)
	ours := certtest.Write(t, authority.Sign(t, "coordinator", tomorrow), authority)
	good := optionsFor("https://localhost:" + secure.Endpoint[strings.LastIndexByte(secure.Endpoint, ':')+1:])
	good.TrustFile, good.CertificateFile, good.KeyFile = ours.Trust, ours.Certificate, ours.Key
	connect(t, good)

	theirs := certtest.Write(t, stranger.Sign(t, "coordinator", tomorrow), stranger)
	damaged := filepath.Join(t.TempDir(), "damaged.pem")
	if err := os.WriteFile(damaged, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*etcdstore.ClusterOptions)
		want   string
	}{
		"stranger's authority":   {func(o *etcdstore.ClusterOptions) { o.TrustFile = theirs.Trust }, "unknown authority"},
		"stranger's certificate": {func(o *etcdstore.ClusterOptions) { o.CertificateFile, o.KeyFile = theirs.Certificate, theirs.Key }, "tls: "},
		"no certificate":         {func(o *etcdstore.ClusterOptions) { o.CertificateFile, o.KeyFile = "", "" }, "certificate required"},
		"another name":           {func(o *etcdstore.ClusterOptions) { o.Endpoints = []string{secure.Endpoint} }, "127.0.0.1"},
		"no TLS":                 {func(o *etcdstore.ClusterOptions) { o.Endpoints = []string{"http" + secure.Endpoint[len("https"):]} }, "does it want https://?"},
		"TLS at a plain port":    {func(o *etcdstore.ClusterOptions) { o.Endpoints = []string{"https" + plain.Endpoint[len("http"):]} }, "TLS: "},
		"missing authority":      {func(o *etcdstore.ClusterOptions) { o.TrustFile = damaged + ".gone" }, "authorities of etcd: open"},
		"damaged authority":      {func(o *etcdstore.ClusterOptions) { o.TrustFile = damaged }, "holds no certificate in PEM"},
		"damaged certificate":    {func(o *etcdstore.ClusterOptions) { o.CertificateFile = damaged }, "certificate for etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := good
			options.Patience = time.Second
			test.change(&options)
			refusedWith(t, options, test.want)
		})
	}
}

// Endpoints of clusters that do not know each other are refused by their ids, before anything is read or written.
func TestMixedClusters(t *testing.T) {
	t.Parallel()
	one, other := etcdtest.Serve(t, "http", nil), etcdtest.Serve(t, "http", nil)
	var mixed *etcdstore.MixedClustersError
	err := connectError(t, optionsFor(one.Endpoint, other.Endpoint))
	if !errors.As(err, &mixed) || len(mixed.Clusters) != 2 || mixed.Clusters[one.Endpoint] == mixed.Clusters[other.Endpoint] {
		t.Fatalf("%v", err)
	}
	for _, server := range []*etcdtest.Server{one, other} {
		if got, err := server.Client(t).Get(t.Context(), etcdtest.Space.Schema()); err != nil || len(got.Kvs) != 0 {
			t.Errorf("%v, %v: something was written", got, err)
		}
	}
}

// A prefix that another program uses, or another layout, is refused.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", nil)
	client := server.Client(t)
	for i, test := range []struct {
		keys map[string]string // below the root
		is   func(error) bool
	}{
		{map[string]string{"config": "x"}, func(err error) bool {
			var foreign *etcdstore.ForeignKeysError
			return errors.As(err, &foreign) && strings.HasSuffix(foreign.Key, "/config")
		}},
		{map[string]string{"meta/coordinators": "3", "topics/x": ""}, func(err error) bool {
			var foreign *etcdstore.ForeignKeysError
			return errors.As(err, &foreign)
		}},
		{map[string]string{"meta/schema": "7", "meta/coordinators": "3"}, func(err error) bool {
			var newer *etcdstore.NewerSchemaError
			return errors.As(err, &newer) && newer.Stored == 7
		}},
		{map[string]string{"meta/schema": "{}", "meta/coordinators": "3"}, func(err error) bool { return strings.Contains(err.Error(), "meta/schema") }},
		{map[string]string{"meta/schema": "1"}, func(err error) bool { return strings.Contains(err.Error(), "meta/coordinators") }},
	} {
		options := optionsFor(server.Endpoint)
		options.Space = keyspace.New("pulsar-tc", fmt.Sprint("foreign", i))
		for key, value := range test.keys {
			if _, err := client.Put(t.Context(), options.Space.Root()+key, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := connectError(t, options); !test.is(err) {
			t.Errorf("%v: %v", test.keys, err)
		}
	}
}

// Wrong credentials are refused with the settings to look at, and without the password.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", nil)
	root := server.Authenticate(t, etcdtest.Space.Root())
	options := optionsFor(server.Endpoint)
	refusedWith(t, options, "etcdUser and etcdPassword are not set")
	options.User, options.Password = etcdtest.User, "a guess"
	refusedWith(t, options, "etcdPassword is not its password")
	if err := connectError(t, options); strings.Contains(err.Error(), options.Password) {
		t.Errorf("%v: tells the password", err)
	}
	options.User = "nobody"
	refusedWith(t, options, "etcd does not know etcdUser")
	options.User, options.Password = etcdtest.User, etcdtest.UserPassword
	connect(t, options)
	etcdtest.Revoke(t, root, etcdtest.Space.Root())
	refusedWith(t, options, "permission denied", "etcdUser needs a role")
}
