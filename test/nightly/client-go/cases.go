package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	casesAtOnce = 4
	caseTimeout = 60 * time.Second
)

// testCase is one promise of the server. Its function fails through must, check and equal.
type testCase struct {
	name string
	run  func(t *trial)
}

// trial is one run of a case: its own namespace, and clients that use one encoding.
type trial struct {
	*clients
	context.Context
	namespace string
	target    target
}

// result is the line printed for each case.
type result struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
	Ms    int64  `json:"ms"`
}

// variant is a case together with the encoding it is run in.
type variant struct {
	testCase
	encoding string
}

func variants() []variant {
	var all []variant
	for _, group := range [][]testCase{
		lifecycleCases, coreCases, writeCases, patchCases, errorCases, readCases, pagingCases,
		watchCases, informerCases, recorderCases,
	} {
		for _, each := range group {
			for _, encoding := range []string{jsonEncoding, protobufEncoding} {
				all = append(all, variant{each, encoding})
			}
		}
	}
	for _, group := range [][]testCase{dynamicCases, applyCases, discoveryCases} {
		for _, each := range group {
			all = append(all, variant{each, jsonEncoding})
		}
	}
	for _, each := range metadataCases {
		all = append(all, variant{each, protobufEncoding})
	}
	return all
}

func (variant variant) title() string {
	return fmt.Sprintf("%s [%s]", variant.name, encodingNames[variant.encoding])
}

func runSuite(target target, only *regexp.Regexp) {
	var output sync.Mutex
	var running sync.WaitGroup
	places := make(chan struct{}, casesAtOnce)
	// So that the suite can be run twice against one server.
	series := time.Now().Unix()
	for index, each := range variants() {
		if !only.MatchString(each.title()) {
			continue
		}
		running.Add(1)
		places <- struct{}{}
		go func() {
			defer running.Done()
			startedAt := time.Now()
			err := runOne(target, each, fmt.Sprintf("case-%d-%d", series, index))
			outcome := result{Name: each.title(), Ms: time.Since(startedAt).Milliseconds()}
			if err != nil {
				outcome.Error = err.Error()
			}
			<-places
			output.Lock()
			defer output.Unlock()
			_ = json.NewEncoder(os.Stdout).Encode(outcome)
		}()
	}
	running.Wait()
}

func runOne(target target, variant variant, namespace string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
	defer cancel()
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failure:
			err = cause
		default:
			err = fmt.Errorf("panic: %v\n%s", cause, stack())
		}
	}()
	variant.run(&trial{
		clients:   must(newClients(target, variant.encoding)),
		Context:   ctx,
		namespace: namespace,
		target:    target,
	})
	return nil
}

// failure is the panic value of a case that failed.
type failure struct{ text string }

func (failure failure) Error() string { return failure.text }

// must ends the case on an error.
func must[V any](value V, err error) V {
	if err != nil {
		fail("%v", err)
	}
	return value
}

func mustNot(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func check(isRight bool, format string, values ...any) {
	if !isRight {
		fail(format, values...)
	}
}

func equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		fail("%s: got %s, want %s", what, shown(got), shown(want))
	}
}

// eventually polls until the condition holds.
func (t *trial) eventually(what string, isSo func() bool) {
	for !isSo() {
		select {
		case <-t.Done():
			fail("in vain: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func fail(format string, values ...any) {
	panic(failure{fmt.Sprintf("%s: %s", place(), fmt.Sprintf(format, values...))})
}

// place is the line of the case that made the call.
func place() string {
	for skip := 2; ; skip++ {
		_, file, line, ok := runtime.Caller(skip)
		if !ok || filepath.Base(file) != "cases.go" {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
	}
}

func stack() string {
	bytes := make([]byte, 4096)
	return strings.TrimSpace(string(bytes[:runtime.Stack(bytes, false)]))
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%#v", value)
	}
	return string(text)
}
