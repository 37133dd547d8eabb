package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
)

// The burst: many recorders of both kinds write, each event about its own object so that none is
// merged into another, while the test restarts the servers. A sink between each recorder and its
// client records the responses.

const (
	burstNamespace = "burst"
	// A recorder sleeps up to 12.5 s after a broken connection, and tries twelve times.
	settleTimeout = 150 * time.Second
	retrySleep    = time.Second
)

type burstSize struct{ recorders, events, perSecond int }

// burstReport contains the results that the test checks.
type burstReport struct {
	Events int `json:"events"`
	// Told: how many creates got a success response.
	Told int `json:"told"`
	// Found: how many had been stored by an earlier try whose response was lost.
	Found int `json:"found"`
	// Refused: rejected by the server, with its messages.
	Refused []string `json:"refused"`
	// Unsettled: creates without a final result.
	Unsettled int `json:"unsettled"`
	// Missing: acknowledged and not stored, or stored with another uid.
	Missing []string `json:"missing"`
	// Twice: objects with more than one event about them.
	Twice []string `json:"twice"`
	// Broken: how many tries ended without a response.
	Broken int `json:"broken"`
	// TurnedAway: how many responses asked to retry later.
	TurnedAway int64 `json:"turnedAway"`
}

// ledger records the result of the create for each object.
type ledger struct {
	mutex   sync.Mutex
	told    map[string]types.UID
	found   map[string]bool
	refused map[string]string
	broken  int
}

func runBurst(target target, size burstSize) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	book := &ledger{told: map[string]types.UID{}, found: map[string]bool{}, refused: map[string]string{}}
	var all []*clients
	var tell []func(pod *corev1.Pod)
	for index := range size.recorders {
		encoding := []string{jsonEncoding, protobufEncoding}[index/2%2]
		each := must(newClients(target, encoding))
		all = append(all, each)
		if index%2 == 0 {
			tell = append(tell, newTeller(ctx, each.typed, book))
		} else {
			tell = append(tell, oldTeller(ctx, each.typed, book))
		}
	}
	fmt.Println(`{"started":true}`)
	ticker := time.NewTicker(10 * time.Millisecond)
	startedAt := time.Now()
	for index := 0; index < size.events; {
		<-ticker.C
		due := int(time.Since(startedAt).Seconds() * float64(size.perSecond))
		for ; index < min(due, size.events); index++ {
			tell[index%len(tell)](podOf(index))
		}
	}
	fmt.Println(`{"written":true}`)
	book.settle(size.events)
	report := book.report(ctx, must(newClients(target, protobufEncoding)).typed)
	report.Events = size.events
	report.Unsettled = size.events - report.Told - report.Found - len(report.Refused)
	for _, each := range all {
		report.TurnedAway += each.seen.turnedAway.Load()
	}
	_ = json.NewEncoder(os.Stdout).Encode(report)
}

func podOf(index int) *corev1.Pod {
	name := fmt.Sprintf("pod-%05d", index)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: burstNamespace, UID: types.UID(name)}}
}

func newTeller(ctx context.Context, client kubernetes.Interface, book *ledger) func(*corev1.Pod) {
	sink := &newSink{events.EventSinkImpl{Interface: client.EventsV1()}, book}
	broadcaster := events.NewBroadcaster(sink)
	mustNot(broadcaster.StartRecordingToSinkWithContext(ctx))
	recorder := broadcaster.NewRecorder(scheme.Scheme, controller)
	return func(pod *corev1.Pod) {
		recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding", "bound %s", pod.Name)
	}
}

func oldTeller(ctx context.Context, client kubernetes.Interface, book *ledger) func(*corev1.Pod) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithSleepDuration(retrySleep))
	sink := &corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")}
	broadcaster.StartRecordingToSink(&oldSink{sink, book})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: controller})
	return func(pod *corev1.Pod) {
		recorder.Eventf(pod, corev1.EventTypeNormal, "Pulled", "pulled for %s", pod.Name)
	}
}

type newSink struct {
	events.EventSinkImpl
	book *ledger
}

func (sink *newSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := sink.EventSinkImpl.Create(ctx, event)
	sink.book.note(event.Regarding.Name, created, err)
	return created, err
}

type oldSink struct {
	record.EventSink
	book *ledger
}

func (sink *oldSink) Create(event *corev1.Event) (*corev1.Event, error) {
	created, err := sink.EventSink.Create(event)
	sink.book.note(event.InvolvedObject.Name, created, err)
	return created, err
}

func (book *ledger) note(about string, created metav1.Object, err error) {
	book.mutex.Lock()
	defer book.mutex.Unlock()
	_, isStatus := err.(apierrors.APIStatus)
	switch {
	case err == nil:
		book.told[about] = created.GetUID()
	case apierrors.IsAlreadyExists(err):
		book.found[about] = true
	case isStatus:
		book.refused[about] = err.Error()
	default:
		book.broken++
	}
}

func (book *ledger) settle(count int) {
	deadline := time.Now().Add(settleTimeout)
	for time.Now().Before(deadline) {
		book.mutex.Lock()
		settled := len(book.told) + len(book.found) + len(book.refused)
		book.mutex.Unlock()
		if settled >= count {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (book *ledger) report(ctx context.Context, client kubernetes.Interface) burstReport {
	stored := map[string]types.UID{}
	report := burstReport{Refused: []string{}, Missing: []string{}, Twice: []string{}}
	walk := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.EventsV1().Events(burstNamespace).List(ctx, options)
	}))
	mustNot(walk.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		event := object.(*eventsv1.Event)
		if _, isKnown := stored[event.Regarding.Name]; isKnown {
			report.Twice = append(report.Twice, event.Regarding.Name)
		}
		stored[event.Regarding.Name] = event.UID
		return nil
	}))
	book.mutex.Lock()
	defer book.mutex.Unlock()
	report.Told, report.Found, report.Broken = len(book.told), len(book.found), book.broken
	for about, uid := range book.told {
		if stored[about] != uid {
			report.Missing = append(report.Missing, about)
		}
	}
	for about := range book.found {
		if stored[about] == "" {
			report.Missing = append(report.Missing, about)
		}
	}
	for about, words := range book.refused {
		report.Refused = append(report.Refused, about+": "+words)
	}
	return report
}
