package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// The recorded night, told to real recorders at its own times. They run in a bubble of testing/synctest:
// its clock is the one that they read, and moves on when all of them wait. Requests leave the bubble,
// whose clock stands still meanwhile. recorders.test.ts builds and runs this.

var (
	nightServer   = flag.String("server", "", "base URL")
	nightToken    = flag.String("token", "", "bearer token")
	nightFile     = flag.String("night", "", "file with what happens, in the order of time")
	nightRecorder = flag.String("recorder", "", "core/v1, core/v1-unlimited or events.k8s.io/v1")
	nightReport   = flag.String("report", "", "file for what the recorders made of it")
)

// happening is told to the recorder of a controller.
type happening struct {
	AtMs      int64                  `json:"atMs"`
	Component string                 `json:"component"`
	Host      string                 `json:"host"`
	About     corev1.ObjectReference `json:"about"`
	Type      string                 `json:"type"`
	Reason    string                 `json:"reason"`
	Note      string                 `json:"note"`
}

// sighting is one occurrence, as the recorder counted it.
type sighting struct {
	AtMs      int64  `json:"atMs"`
	Event     string `json:"event"`
	Count     int32  `json:"count"`
	Namespace string `json:"namespace"`
	About     string `json:"about"`
	Type      string `json:"type"`
	Reason    string `json:"reason"`
}

// nightBook contains the results that the test checks.
type nightBook struct {
	mutex sync.Mutex
	// Seen: what the recorders of core/v1 counted, whether or not they sent it.
	Seen []sighting `json:"seen"`
	// Sent: the last count that the server has acknowledged, by event.
	Sent    map[string]int32 `json:"sent"`
	Creates int              `json:"creates"`
	Patches int              `json:"patches"`
	Refused []string         `json:"refused"`
}

func TestNight(t *testing.T) {
	var night []happening
	mustNot(json.Unmarshal(must(os.ReadFile(*nightFile)), &night))
	clients := must(newClients(target{server: *nightServer, token: *nightToken}, jsonEncoding))
	book := &nightBook{Sent: map[string]int32{}, Seen: []sighting{}, Refused: []string{}}
	office := newOffice()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		crew := crewOf(ctx, *nightRecorder, clients, book, office)
		for _, what := range night {
			time.Sleep(time.Until(time.UnixMilli(what.AtMs)))
			crew(what)
			synctest.Wait()
		}
		// The recorder of events.k8s.io writes the end of a series minutes later.
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
	})
	mustNot(os.WriteFile(*nightReport, must(json.Marshal(book)), 0o600))
}

// crewOf returns what tells a recorder: one for each component and host, as processes have.
func crewOf(ctx context.Context, kind string, clients *clients, book *nightBook, office *office) func(happening) {
	members := map[[2]string]func(happening){}
	return func(what happening) {
		key := [2]string{what.Component, what.Host}
		if members[key] == nil {
			if kind == "events.k8s.io/v1" {
				members[key] = newMember(ctx, clients, book, office, what.Component)
			} else {
				members[key] = oldMember(ctx, clients, book, office, key, kind == "core/v1-unlimited")
			}
		}
		members[key](what)
	}
}

func newMember(ctx context.Context, clients *clients, book *nightBook, office *office, component string) func(happening) {
	sink := &newNightSink{events.EventSinkImpl{Interface: clients.typed.EventsV1()}, book, office}
	broadcaster := events.NewBroadcaster(sink)
	mustNot(broadcaster.StartRecordingToSinkWithContext(ctx))
	recorder := broadcaster.NewRecorder(scheme.Scheme, component)
	go func() {
		<-ctx.Done()
		broadcaster.Shutdown()
	}()
	return func(what happening) {
		recorder.Eventf(&what.About, nil, what.Type, what.Reason, "Acting", "%s", what.Note)
	}
}

func oldMember(ctx context.Context, clients *clients, book *nightBook, office *office, who [2]string, isUnlimited bool) func(happening) {
	options := record.CorrelatorOptions{SpamKeyFunc: book.see}
	if isUnlimited {
		options.BurstSize, options.QPS, options.MaxEvents = 1e6, 1e3, 1e6
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(options))
	sink := &corev1client.EventSinkImpl{Interface: clients.typed.CoreV1().Events("")}
	broadcaster.StartRecordingToSink(&oldNightSink{sink, book, office})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: who[0], Host: who[1]})
	return func(what happening) {
		recorder.Event(&what.About, what.Type, what.Reason, what.Note)
	}
}

// see notes every occurrence: a recorder asks for the key, by which it limits rates, after it has
// counted an event and before it decides whether to send it. The key is that of client-go.
func (book *nightBook) see(event *corev1.Event) string {
	object := event.InvolvedObject
	book.mutex.Lock()
	defer book.mutex.Unlock()
	book.Seen = append(book.Seen, sighting{
		AtMs: time.Now().UnixMilli(), Event: event.Namespace + "/" + event.Name, Count: event.Count,
		Namespace: object.Namespace, About: object.Name, Type: event.Type, Reason: event.Reason,
	})
	return strings.Join([]string{event.Source.Component, event.Source.Host, object.Kind, object.Namespace,
		object.Name, string(object.UID), object.APIVersion, event.Type}, "")
}

func (book *nightBook) note(key types.NamespacedName, count int32, isCreate bool, err error) {
	book.mutex.Lock()
	defer book.mutex.Unlock()
	if err != nil {
		book.Refused = append(book.Refused, err.Error())
		return
	}
	book.Sent[key.String()] = count
	if isCreate {
		book.Creates++
	} else {
		book.Patches++
	}
}

type newNightSink struct {
	events.EventSinkImpl
	book   *nightBook
	office *office
}

func (sink *newNightSink) Create(_ context.Context, event *eventsv1.Event) (created *eventsv1.Event, err error) {
	sink.office.run(func() { created, err = sink.EventSinkImpl.Create(context.Background(), event) })
	sink.note(event, true, err)
	return created, err
}

func (sink *newNightSink) Patch(_ context.Context, event *eventsv1.Event, data []byte) (patched *eventsv1.Event, err error) {
	sink.office.run(func() { patched, err = sink.EventSinkImpl.Patch(context.Background(), event, data) })
	sink.note(event, false, err)
	return patched, err
}

func (sink *newNightSink) note(event *eventsv1.Event, isCreate bool, err error) {
	count := int32(1)
	if event.Series != nil {
		count = event.Series.Count
	}
	sink.book.note(types.NamespacedName{Namespace: event.Namespace, Name: event.Name}, count, isCreate, err)
}

type oldNightSink struct {
	record.EventSink
	book   *nightBook
	office *office
}

func (sink *oldNightSink) Create(event *corev1.Event) (created *corev1.Event, err error) {
	sink.office.run(func() { created, err = sink.EventSink.Create(event) })
	sink.book.note(types.NamespacedName{Namespace: event.Namespace, Name: event.Name}, event.Count, true, err)
	return created, err
}

func (sink *oldNightSink) Patch(event *corev1.Event, data []byte) (patched *corev1.Event, err error) {
	sink.office.run(func() { patched, err = sink.EventSink.Patch(event, data) })
	sink.book.note(types.NamespacedName{Namespace: event.Namespace, Name: event.Name}, event.Count, false, err)
	return patched, err
}

// office runs errands of the bubble outside of it, where connections and their timers are.
type office struct{ desks chan desk }

type desk struct {
	errand chan func()
	done   chan struct{}
}

const deskCount = 8

func newOffice() *office {
	office := &office{make(chan desk, deskCount)}
	for range deskCount {
		desk := desk{make(chan func()), make(chan struct{})}
		office.desks <- desk
		go func() {
			for errand := range desk.errand {
				errand()
				desk.done <- struct{}{}
			}
		}()
	}
	return office
}

func (office *office) run(errand func()) {
	desk := <-office.desks
	desk.errand <- errand
	<-desk.done
	office.desks <- desk
}
