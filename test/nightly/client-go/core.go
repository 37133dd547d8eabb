package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// coreCases follow the conformance tests of core/v1, and read each event through both groups.
var coreCases = []testCase{
	{"core/v1: an event is created, listed, patched, updated and deleted", coreLife},
	{"core/v1: a collection is deleted by label", coreCollection},
	{"core/v1: an event written there is read from events.k8s.io with the same identity", coreToEvents},
	{"core/v1: an event of events.k8s.io is read there with the same identity", eventsToCore},
	{"core/v1: Search finds the events about an object", coreSearch},
	{"core/v1: field selectors of involvedObject, source and type work", coreSelectors},
	{"core/v1: a watch tells of events written through events.k8s.io", coreWatch},
	{"core/v1: what may not change through events.k8s.io may change here", coreChanges},
}

func coreLife(t *trial) {
	created := must(t.coreEvents().Create(t, t.coreSample("core-life"), metav1.CreateOptions{}))
	bySuite := metav1.ListOptions{LabelSelector: "suite=" + t.namespace}
	listed := must(t.typed.CoreV1().Events("").List(t, bySuite))
	equal("listed", len(listed.Items), 1)
	equal("the one", listed.Items[0].Name, created.Name)

	patch := must(json.Marshal(map[string]any{"message": "patched"}))
	must(t.coreEvents().Patch(t, created.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))
	got := must(t.coreEvents().Get(t, created.Name, metav1.GetOptions{}))
	equal("message", got.Message, "patched")

	got.ResourceVersion = ""
	got.ManagedFields = nil
	got.Series = &corev1.EventSeries{Count: 100, LastObservedTime: seriesOf(2).LastObservedTime}
	must(t.coreEvents().Update(t, got, metav1.UpdateOptions{}))
	updated := must(t.coreEvents().Get(t, created.Name, metav1.GetOptions{}))
	equal("series", updated.Series.Count, int32(100))

	mustNot(t.coreEvents().Delete(t, created.Name, metav1.DeleteOptions{}))
	equal("left", len(must(t.coreEvents().List(t, bySuite)).Items), 0)
}

func coreCollection(t *trial) {
	for _, name := range []string{"one", "two", "three"} {
		must(t.coreEvents().Create(t, t.coreSample(name), metav1.CreateOptions{}))
	}
	bySuite := metav1.ListOptions{LabelSelector: "suite=" + t.namespace}
	equal("created", len(must(t.coreEvents().List(t, bySuite)).Items), 3)
	mustNot(t.coreEvents().DeleteCollection(t, metav1.DeleteOptions{}, bySuite))
	t.eventually("none is left", func() bool {
		return len(must(t.coreEvents().List(t, bySuite)).Items) == 0
	})
}

func coreToEvents(t *trial) {
	old := must(t.coreEvents().Create(t, t.coreSample("old"), metav1.CreateOptions{}))
	event := must(t.events().Get(t, "old", metav1.GetOptions{}))
	equal("uid", event.UID, old.UID)
	equal("version", event.ResourceVersion, old.ResourceVersion)
	equal("note", event.Note, old.Message)
	equal("regarding", event.Regarding, old.InvolvedObject)
	equal("source", event.DeprecatedSource, old.Source)
	equal("count", event.DeprecatedCount, old.Count)
	check(event.DeprecatedFirstTimestamp.Equal(&old.FirstTimestamp), "first: %v", event.DeprecatedFirstTimestamp)
	check(event.DeprecatedLastTimestamp.Equal(&old.LastTimestamp), "last: %v", event.DeprecatedLastTimestamp)
}

func eventsToCore(t *trial) {
	event := t.create("new", func(event *eventsv1.Event) { event.Series = seriesOf(4) })
	old := must(t.coreEvents().Get(t, "new", metav1.GetOptions{}))
	equal("uid", old.UID, event.UID)
	equal("version", old.ResourceVersion, event.ResourceVersion)
	equal("message", old.Message, event.Note)
	equal("object", old.InvolvedObject, event.Regarding)
	equal("controller", old.ReportingController, event.ReportingController)
	equal("action", old.Action, event.Action)
	equal("series", old.Series.Count, int32(4))
	check(old.EventTime.Equal(&event.EventTime), "eventTime: %v", old.EventTime)
	check(old.FirstTimestamp.IsZero(), "firstTimestamp: %v", old.FirstTimestamp)
}

func coreSearch(t *trial) {
	must(t.coreEvents().Create(t, t.coreSample("about-web"), metav1.CreateOptions{}))
	other := t.coreSample("about-db")
	other.InvolvedObject = t.reference("db-0")
	must(t.coreEvents().Create(t, other, metav1.CreateOptions{}))
	found := must(t.coreEvents().SearchWithContext(t, scheme.Scheme, t.pod("db-0")))
	equal("found", len(found.Items), 1)
	equal("the one", found.Items[0].Name, "about-db")
}

func coreSelectors(t *trial) {
	must(t.coreEvents().Create(t, t.coreSample("plain"), metav1.CreateOptions{}))
	loud := t.coreSample("loud")
	loud.Type = corev1.EventTypeWarning
	loud.Source.Component = "kubelet"
	loud.InvolvedObject.FieldPath = "spec.containers{app}"
	must(t.coreEvents().Create(t, loud, metav1.CreateOptions{}))
	for _, selector := range []fields.Set{
		{"type": "Warning"},
		{"source": "kubelet"},
		{"involvedObject.fieldPath": "spec.containers{app}"},
		{"involvedObject.kind": "Pod", "metadata.name": "loud"},
		{"involvedObject.uid": "uid-of-web-0", "reason": "Tested", "type": "Warning"},
	} {
		options := metav1.ListOptions{FieldSelector: selector.AsSelector().String()}
		found := must(t.coreEvents().List(t, options))
		equal(options.FieldSelector, len(found.Items), 1)
		equal(options.FieldSelector, found.Items[0].Name, "loud")
	}
}

func coreWatch(t *trial) {
	start := must(t.coreEvents().List(t, metav1.ListOptions{})).ResourceVersion
	watch := must(t.coreEvents().Watch(t, metav1.ListOptions{ResourceVersion: start}))
	defer watch.Stop()
	event := t.create("seen")
	first := t.next(watch)
	equal("type", string(first.Type), "ADDED")
	seen, isEvent := first.Object.(*corev1.Event)
	check(isEvent, "got a %T", first.Object)
	equal("message", seen.Message, event.Note)
	equal("version", seen.ResourceVersion, event.ResourceVersion)
}

func coreChanges(t *trial) {
	event := t.create("changing")
	old := must(t.coreEvents().Get(t, "changing", metav1.GetOptions{}))
	old.Message = "changed"
	old.Reason = "Changed"
	must(t.coreEvents().Update(t, old, metav1.UpdateOptions{}))
	got := must(t.events().Get(t, "changing", metav1.GetOptions{}))
	equal("note", got.Note, "changed")
	equal("reason", got.Reason, "Changed")
	equal("uid", got.UID, event.UID)
}
