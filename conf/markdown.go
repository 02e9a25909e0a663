package conf

import (
	"fmt"
	"strings"
)

// ownKeys are the settings that no file of Pulsar has, in the order of the table.
var ownKeys = []string{
	"dataDir", "initialNumTransactionCoordinators", "tooManyTransactionsPauseMs", "transactionMaxTtlMs", "transactionMaxParticipants",
	"transactionMaxParticipantBytes", "transactionMaxNamesPerOwner", "transactionEndWaitMs", "transactionLateSendPolicy",
	"transactionMetaPersistCount", "transactionMetaPersistUnnamedCount", "transactionMetaPersistTimeInHour",
	"transactionMetaExpireCheckIntervalInSecond", "transactionMetaPersistMinTimeInSecond", "transactionMetaPersistMaxPerCoordinator",
	"etcdQuotaBytes", "etcdTrustCertsFilePath", "etcdCertificateFilePath", "etcdKeyFilePath", "etcdUser", "etcdPassword", "coordinatorLeaseSeconds", "coordinatorGiveUpSeconds",
	"etcdMaxTxnOps", "etcdMaxRequestBytes", "etcdManageStore",
}

// Markdown returns the table of settings for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Settings\n\n" +
		"Keys are those of Pulsar's broker.conf where Pulsar has one. Made from the code by `go generate ./conf`.\n\n" +
		"| key | unit | default | allowed | meaning |\n|---|---|---|---|---|\n")
	for i := range settings() {
		s := &settings()[i]
		key := s.key
		if len(s.also) > 0 {
			key += " (also " + strings.Join(s.also, ", ") + ")"
		}
		fallback := s.fallback
		if s.external != "" {
			fallback += ", " + s.external + " with an etcd cluster"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", key, s.unit, fallback, strings.TrimSuffix(s.rule(), " ("+s.unit+")"), s.doc)
	}
	b.WriteString("\nPulsar does not have: " + strings.Join(ownKeys, ", ") + ". Names that begin with transactionMetaPersist are PIP-255's, or go with them.\n")
	b.WriteString("\n## Keys of Pulsar that are known and not honoured\n\n" +
		"A value other than the harmless ones is reported at the start, or refuses it.\n\n" +
		"| key | harmless | otherwise | reason |\n|---|---|---|---|\n")
	for _, k := range notHonoured {
		otherwise := "reported"
		if k.refuse {
			otherwise = "refused"
		}
		harmless := "empty"
		if k.harmless != "" {
			harmless += ", " + strings.ReplaceAll(k.harmless, "|", ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k.key, harmless, otherwise, k.reason)
	}
	return b.String()
}
