// Command client-go tests a server against what programs built on client-go expect.
//
//	suite   runs the named cases and prints one JSON line for each
//	burst   lets many recorders write at once and reports the responses, see burst.go
//
// It is built and run by client-go.test.ts and burst.test.ts.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	// The results contain what matters of client-go's own log.
	klog.SetLogger(logr.Discard())
	var target target
	flag.StringVar(&target.server, "server", "", "base URL")
	flag.StringVar(&target.ca, "ca", "", "file of the certificate to trust; without one, any is")
	flag.StringVar(&target.token, "token", "", "bearer token")
	only := flag.String("only", "", "run the cases whose name matches")
	recorders := flag.Int("recorders", 20, "burst: how many recorders")
	count := flag.Int("events", 1000, "burst: how many events in all")
	pace := flag.Int("per-second", 500, "burst: how many events a second")
	flag.Parse()

	switch flag.Arg(0) {
	case "suite":
		runSuite(target, regexp.MustCompile(*only))
	case "burst":
		runBurst(target, burstSize{recorders: *recorders, events: *count, perSecond: *pace})
	default:
		fmt.Fprintln(os.Stderr, "usage: client-go --server URL --ca FILE --token TOKEN suite|burst")
		os.Exit(2)
	}
}

// target is the address of the server, and the credentials.
type target struct {
	server string
	ca     string
	token  string
}
