package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// oldRecorderCases do the same with the recorder of core/v1, which most programs use.
var oldRecorderCases = []testCase{
	{"recorder of core/v1: an event arrives in both groups", oldRecorded},
	{"recorder of core/v1: a repetition raises the count by a patch", oldRecordedCount},
	{"recorder of core/v1: a repetition of what is gone is created again", oldRecordedAgain},
	{"recorder of core/v1: many alike are combined into one", oldRecordedCombined},
	{"recorder of core/v1: annotations are kept", oldRecordedAnnotations},
	{"recorder of core/v1: waits for as long as Retry-After says", oldRecordedLater},
}

func (t *trial) oldRecorder() record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(t), record.WithSleepDuration(100*time.Millisecond))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: t.typed.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: controller, Host: "node-1"})
}

func isCounted(count int32) func(*eventsv1.Event) bool {
	return func(event *eventsv1.Event) bool { return event.DeprecatedCount == count }
}

func oldRecorded(t *trial) {
	t.oldRecorder().Event(t.pod("web-0"), corev1.EventTypeWarning, "Tested", "it happened")
	event := t.only("stored", isCounted(1))
	equal("note", event.Note, "it happened")
	equal("source", event.DeprecatedSource, corev1.EventSource{Component: controller, Host: "node-1"})
	equal("controller", event.ReportingController, controller)
	check(event.EventTime.IsZero(), "eventTime %v", event.EventTime)
	old := must(t.coreEvents().Get(t, event.Name, metav1.GetOptions{}))
	equal("uid", old.UID, event.UID)
	equal("message", old.Message, "it happened")
	check(!old.FirstTimestamp.IsZero() && !old.LastTimestamp.IsZero(), "without timestamps")
}

func oldRecordedCount(t *trial) {
	recorder := t.oldRecorder()
	for range 3 {
		recorder.Event(t.pod("web-0"), corev1.EventTypeNormal, "Tested", "again and again")
	}
	t.only("counted", isCounted(3))
	equal("creates", t.seen.creates.Load(), int64(1))
	equal("patches", t.seen.patches.Load(), int64(2))
}

func oldRecordedAgain(t *trial) {
	recorder := t.oldRecorder()
	recorder.Event(t.pod("web-0"), corev1.EventTypeNormal, "Tested", "still here")
	first := t.only("stored", isCounted(1))
	mustNot(t.coreEvents().Delete(t, first.Name, metav1.DeleteOptions{}))
	recorder.Event(t.pod("web-0"), corev1.EventTypeNormal, "Tested", "still here")
	again := t.only("there again, counted", isCounted(2))
	equal("name", again.Name, first.Name)
	check(again.UID != first.UID, "the uid is the old one")
}

func oldRecordedCombined(t *trial) {
	recorder := t.oldRecorder()
	for index := range 14 {
		recorder.Event(t.pod("web-0"), corev1.EventTypeNormal, "Tested", fmt.Sprintf("message %d", index))
	}
	t.eventually("the last ones are one", func() bool {
		items := must(t.coreEvents().List(t, metav1.ListOptions{})).Items
		check(len(items) <= 10, "%d events", len(items))
		for _, item := range items {
			if strings.HasPrefix(item.Message, "(combined from similar events)") && item.Count == 5 {
				return len(items) == 10
			}
		}
		return false
	})
}

func oldRecordedAnnotations(t *trial) {
	annotations := map[string]string{"example.com/build": "7"}
	t.oldRecorder().AnnotatedEventf(t.pod("web-0"), annotations, corev1.EventTypeNormal, "Tested", "build %d", 7)
	equal("annotations", t.only("stored", isThere).Annotations, annotations)
}

func oldRecordedLater(t *trial) {
	turnedAway := t.turnAway(1)
	startedAt := time.Now()
	t.oldRecorder().Event(t.pod("web-0"), corev1.EventTypeNormal, "Tested", "patiently")
	t.only("stored", isThere)
	equal("turned away", turnedAway.Load(), int64(1))
	check(time.Since(startedAt) >= time.Second, "stored after %v", time.Since(startedAt))
}
