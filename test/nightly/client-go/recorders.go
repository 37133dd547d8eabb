package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// recorderCases use the recorder of events.k8s.io as in practice.
var recorderCases = append([]testCase{
	{"recorder of events.k8s.io: an event arrives as it was told", recorded},
	{"recorder of events.k8s.io: a repetition becomes a series by one patch", recordedSeries},
	{"recorder of events.k8s.io: the heartbeat writes how often it was since", recordedHeartbeat},
	{"recorder of events.k8s.io: a series whose event is gone is created again", recordedAgain},
	{"recorder of events.k8s.io: an invalid event is given up, not tried again", recordedInvalid},
	{"recorder of events.k8s.io: waits for as long as Retry-After says", recordedLater},
	{"recorder of events.k8s.io: the adapter finds the group and uses it", recordedByAdapter},
	{"recorder of events.k8s.io: a related object is kept", recordedRelated},
}, oldRecorderCases...)

// recording is one broadcaster that can be stopped and started again with its cache.
type recording struct {
	trial       *trial
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	stop        context.CancelFunc
}

func (t *trial) record() *recording {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: t.typed.EventsV1()})
	recording := &recording{trial: t, broadcaster: broadcaster}
	recording.recorder = broadcaster.NewRecorder(scheme.Scheme, controller)
	recording.start()
	return recording
}

func (recording *recording) start() {
	ctx, stop := context.WithCancel(recording.trial)
	recording.stop = stop
	mustNot(recording.broadcaster.StartRecordingToSinkWithContext(ctx))
}

func (recording *recording) tell(note string) {
	t := recording.trial
	recording.recorder.Eventf(t.pod("web-0"), nil, corev1.EventTypeNormal, "Tested", "Testing", note)
}

// only waits until the one event of the namespace satisfies the condition.
func (t *trial) only(what string, isSo func(*eventsv1.Event) bool) *eventsv1.Event {
	var found *eventsv1.Event
	t.eventually(what, func() bool {
		items := must(t.events().List(t, metav1.ListOptions{})).Items
		check(len(items) < 2, "%d events while waiting: %s", len(items), what)
		if len(items) == 1 && isSo(&items[0]) {
			found = &items[0]
		}
		return found != nil
	})
	return found
}

func isThere(*eventsv1.Event) bool { return true }

func isSeriesOf(count int32) func(*eventsv1.Event) bool {
	return func(event *eventsv1.Event) bool { return event.Series != nil && event.Series.Count == count }
}

func recorded(t *trial) {
	recording := t.record()
	defer recording.stop()
	recording.tell("it happened")
	event := t.only("stored", isThere)
	equal("note", event.Note, "it happened")
	equal("reason", event.Reason, "Tested")
	equal("action", event.Action, "Testing")
	equal("controller", event.ReportingController, controller)
	equal("regarding", event.Regarding.Name, "web-0")
	check(strings.HasPrefix(event.ReportingInstance, controller+"-"), "instance %s", event.ReportingInstance)
	check(strings.HasPrefix(event.Name, "web-0."), "name %s", event.Name)
	check(event.Series == nil, "a series of one")
}

func recordedSeries(t *trial) {
	recording := t.record()
	defer recording.stop()
	recording.tell("first")
	first := t.only("stored", isThere)
	recording.tell("second")
	series := t.only("a series of two", isSeriesOf(2))
	equal("uid", series.UID, first.UID)
	equal("creates", t.seen.creates.Load(), int64(1))
	equal("patches", t.seen.patches.Load(), int64(1))
}

// A series is written again every 30 minutes, and once whenever the recording starts; the test waits
// for the latter.
func recordedHeartbeat(t *trial) {
	recording := t.record()
	recording.tell("first")
	t.only("stored", isThere)
	for range 4 {
		recording.tell("again")
	}
	t.only("a series of two", isSeriesOf(2))
	time.Sleep(100 * time.Millisecond)
	recording.stop()
	recording.start()
	defer recording.stop()
	t.only("a series of five", isSeriesOf(5))
}

func recordedAgain(t *trial) {
	recording := t.record()
	defer recording.stop()
	recording.tell("first")
	first := t.only("stored", isThere)
	mustNot(t.events().Delete(t, first.Name, metav1.DeleteOptions{}))
	recording.tell("second")
	again := t.only("there again, as a series", isSeriesOf(2))
	equal("name", again.Name, first.Name)
	check(again.UID != first.UID, "the uid is the old one")
	equal("creates", t.seen.creates.Load(), int64(2))
}

func recordedInvalid(t *trial) {
	recording := t.record()
	defer recording.stop()
	recording.tell(strings.Repeat("long ", 300))
	t.eventually("tried", func() bool { return t.seen.creates.Load() == 1 })
	recording.recorder.Eventf(t.pod("web-1"), nil, corev1.EventTypeWarning, "Other", "Testing", "short")
	event := t.only("the other one is stored", isThere)
	equal("note", event.Note, "short")
	equal("creates", t.seen.creates.Load(), int64(2))
}

func recordedLater(t *trial) {
	turnedAway := t.turnAway(2)
	startedAt := time.Now()
	recording := t.record()
	defer recording.stop()
	recording.tell("patiently")
	t.only("stored", isThere)
	equal("turned away", turnedAway.Load(), int64(2))
	check(time.Since(startedAt) >= 2*time.Second, "stored after %v", time.Since(startedAt))
}

// turnAway responds to the first creates with 429, as a draining server does.
func (t *trial) turnAway(count int64) *atomic.Int64 {
	var turnedAway atomic.Int64
	hurdle := func(request *http.Request) *http.Response {
		if request.Method != http.MethodPost || turnedAway.Load() == count {
			return nil
		}
		turnedAway.Add(1)
		return &http.Response{
			StatusCode: http.StatusTooManyRequests,
			Status:     "429 Too Many Requests",
			Header:     http.Header{"Retry-After": {"1"}, "Content-Type": {"text/plain"}},
			Body:       http.NoBody,
			Request:    request,
		}
	}
	t.seen.hurdle.Store(&hurdle)
	return &turnedAway
}

func recordedByAdapter(t *trial) {
	adapter := events.NewEventBroadcasterAdapterWithContext(t, t.typed)
	stop := make(chan struct{})
	defer close(stop)
	adapter.StartRecordingToSink(stop)
	recorder := adapter.NewRecorder(controller)
	recorder.Eventf(t.pod("web-0"), nil, corev1.EventTypeNormal, "Tested", "Testing", "number %d", 7)
	event := t.only("stored", isThere)
	equal("note", event.Note, "number 7")
	check(!event.EventTime.IsZero(), "it came as core/v1")
}

func recordedRelated(t *trial) {
	recording := t.record()
	defer recording.stop()
	recording.recorder.Eventf(t.pod("web-0"), t.pod("web-1"), corev1.EventTypeNormal, "Tested", "Testing", "both")
	event := t.only("stored", isThere)
	check(event.Related != nil, "no related object")
	equal("related", fmt.Sprint(event.Related.Kind, event.Related.Name), "Podweb-1")
}
