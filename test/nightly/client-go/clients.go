package main

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	jsonEncoding     = "application/json"
	protobufEncoding = "application/vnd.kubernetes.protobuf"
)

var encodingNames = map[string]string{jsonEncoding: "JSON", protobufEncoding: "protobuf"}

// clients are the clients of a controller, with one configuration.
type clients struct {
	config   *rest.Config
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	seen     *exchanges
}

func newClients(target target, encoding string) (*clients, error) {
	trusted := rest.TLSClientConfig{Insecure: target.ca == ""}
	if target.ca != "" {
		ca, err := os.ReadFile(target.ca)
		if err != nil {
			return nil, err
		}
		trusted.CAData = ca
	}
	seen := &exchanges{}
	config := &rest.Config{
		Host:            target.server,
		BearerToken:     target.token,
		TLSClientConfig: trusted,
		ContentConfig: rest.ContentConfig{
			ContentType:        encoding,
			AcceptContentTypes: encoding,
		},
		QPS:           -1,
		WrapTransport: func(inner http.RoundTripper) http.RoundTripper { return seen.around(inner) },
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadata, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil, err
	}
	return &clients{config, typed, dynamic, metadata, seen}, nil
}

// exchanges counts requests and responses by kind, which shows what a recorder did.
type exchanges struct {
	creates, patches, watchLists, lists, protobuf, turnedAway atomic.Int64
	// hurdle, when set, may respond instead of the server.
	hurdle atomic.Pointer[func(*http.Request) *http.Response]
}

type roundTripper func(*http.Request) (*http.Response, error)

func (trip roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return trip(request)
}

func (seen *exchanges) around(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		seen.note(request)
		if hurdle := seen.hurdle.Load(); hurdle != nil {
			if response := (*hurdle)(request); response != nil {
				return response, nil
			}
		}
		response, err := inner.RoundTrip(request)
		if err == nil {
			seen.noteAnswer(response)
		}
		return response, err
	})
}

func (seen *exchanges) note(request *http.Request) {
	query := request.URL.Query()
	switch {
	case request.Method == http.MethodPost:
		seen.creates.Add(1)
	case request.Method == http.MethodPatch:
		seen.patches.Add(1)
	case query.Get("sendInitialEvents") == "true":
		seen.watchLists.Add(1)
	case request.Method == http.MethodGet && query.Get("watch") == "":
		seen.lists.Add(1)
	}
}

func (seen *exchanges) noteAnswer(response *http.Response) {
	if strings.HasPrefix(response.Header.Get("Content-Type"), protobufEncoding) {
		seen.protobuf.Add(1)
	}
	if response.Header.Get("Retry-After") != "" {
		seen.turnedAway.Add(1)
	}
}
