package main

import (
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lifecycleCases follow the conformance tests of events.k8s.io/v1, step by step.
var lifecycleCases = []testCase{
	{"lifecycle: an event is created, found, patched, updated, deleted and gone", wholeLife},
	{"lifecycle: a collection is deleted by label, at once", collectionLife},
	{"lifecycle: every field comes back as it was sent", everyField},
	{"lifecycle: both encodings show the same event", bothEncodings},
	{"lifecycle: generated events, sent in one encoding, are read in the other", generatedEncodings},
}

func wholeLife(t *trial) {
	event := t.sample("event-test", func(event *eventsv1.Event) {
		event.EventTime = metav1.NewMicroTime(time.Unix(1505828956, 0))
		event.Regarding = corev1.ObjectReference{Namespace: t.namespace}
	})
	created := must(t.events().Create(t, event, metav1.CreateOptions{}))
	must(strconv.ParseUint(created.ResourceVersion, 10, 64))

	bySuite := metav1.ListOptions{LabelSelector: "suite=" + t.namespace}
	everywhere := must(t.typed.EventsV1().Events("").List(t, bySuite))
	equal("found in all namespaces", namesOf(everywhere.Items), []string{event.Name})
	equal("found in its own", namesOf(must(t.events().List(t, bySuite)).Items), []string{event.Name})
	bySource := must(t.coreEvents().List(t, metav1.ListOptions{FieldSelector: "source=" + controller}))
	equal("found by source", len(bySource.Items), 1)
	byController := metav1.ListOptions{FieldSelector: "reportingController=" + controller}
	equal("found by controller", namesOf(must(t.events().List(t, byController)).Items), []string{event.Name})

	got := must(t.events().Get(t, event.Name, metav1.GetOptions{}))
	sameEvent("as created", got, created)

	series := seriesOf(2)
	patch := must(json.Marshal(map[string]any{"series": series}))
	must(t.events().Patch(t, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))
	patched := must(t.events().Get(t, event.Name, metav1.GetOptions{}))
	check(versionOf(patched) > versionOf(created), "the version did not grow: %s", patched.ResourceVersion)
	want := created.DeepCopy()
	want.Series = series
	want.ResourceVersion = patched.ResourceVersion
	want.ManagedFields = patched.ManagedFields
	sameEvent("patched", patched, want)

	update := patched.DeepCopy()
	update.ResourceVersion = ""
	update.Series = seriesOf(100)
	must(t.events().Update(t, update, metav1.UpdateOptions{}))
	updated := must(t.events().Get(t, event.Name, metav1.GetOptions{}))
	update.ResourceVersion = updated.ResourceVersion
	update.ManagedFields = updated.ManagedFields
	sameEvent("updated", updated, update)

	mustNot(t.events().Delete(t, event.Name, metav1.DeleteOptions{}))
	equal("gone everywhere", len(must(t.typed.EventsV1().Events("").List(t, bySuite)).Items), 0)
	equal("gone in its own", len(must(t.events().List(t, bySuite)).Items), 0)
}

func collectionLife(t *trial) {
	t.createMany("one", "two", "three")
	t.create("other", labelled("suite", "another"))
	bySuite := metav1.ListOptions{LabelSelector: "suite=" + t.namespace}
	equal("created", len(must(t.events().List(t, bySuite)).Items), 3)
	mustNot(t.events().DeleteCollection(t, metav1.DeleteOptions{}, bySuite))
	equal("left", len(must(t.events().List(t, bySuite)).Items), 0)
	equal("others", namesOf(must(t.events().List(t, metav1.ListOptions{})).Items), []string{"other"})
}

func everyField(t *trial) {
	related := t.reference("node-a")
	event := t.sample("full", func(event *eventsv1.Event) {
		event.Annotations = map[string]string{"a.example/b": "c", "unicode": "snö ☃"}
		event.Finalizers = []string{"example.com/held"}
		event.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "owner-uid"},
		}
		event.Series = seriesOf(7)
		event.Related = &related
		event.Regarding.FieldPath = "spec.containers{app}"
		event.Regarding.ResourceVersion = "12"
	})
	created := must(t.events().Create(t, event, metav1.CreateOptions{}))
	check(created.UID != "", "no uid")
	check(time.Since(created.CreationTimestamp.Time) < time.Minute, "created at %v", created.CreationTimestamp)
	want := event.DeepCopy()
	want.UID = created.UID
	want.CreationTimestamp = created.CreationTimestamp
	want.ResourceVersion = created.ResourceVersion
	sameEvent("created", created, want)
	sameEvent("read", must(t.events().Get(t, "full", metav1.GetOptions{})), want)
}

func bothEncodings(t *trial) {
	created := t.create("same", func(event *eventsv1.Event) { event.Series = seriesOf(3) })
	for _, encoding := range []string{jsonEncoding, protobufEncoding} {
		other := must(newClients(t.target, encoding))
		got := must(other.typed.EventsV1().Events(t.namespace).Get(t, "same", metav1.GetOptions{}))
		sameEvent(encoding, got, created)
		check((other.seen.protobuf.Load() == 1) == (encoding == protobufEncoding), "not answered in %s", encoding)
	}
}

func versionOf(event *eventsv1.Event) uint64 {
	return must(strconv.ParseUint(event.ResourceVersion, 10, 64))
}
