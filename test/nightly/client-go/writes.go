package main

import (
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var writeCases = []testCase{
	{"create: generateName makes names that differ", generatedNames},
	{"create: a dry run stores nothing", dryCreate},
	{"create: a copied resourceVersion is refused", createWithVersion},
	{"update: an outdated version is a conflict", outdatedUpdate},
	{"update: a name that is not there is created", creatingUpdate},
	{"update: without a change the version stays", unchangedUpdate},
	{"update: a dry run changes nothing", dryUpdate},
	{"delete: another uid is a conflict", deleteOtherUID},
	{"delete: an outdated version is a conflict", deleteOtherVersion},
	{"delete: an event with a finalizer goes when the finalizer does", deleteHeld},
	{"delete: a dry run deletes nothing", dryDelete},
	{"delete: a collection by field selector", deleteByField},
}

func generatedNames(t *trial) {
	unnamed := func(event *eventsv1.Event) {
		event.Name = ""
		event.GenerateName = "web-"
	}
	first, second := t.create("", unnamed), t.create("", unnamed)
	check(first.Name != second.Name, "both are %s", first.Name)
	check(strings.HasPrefix(first.Name, "web-") && len(first.Name) > len("web-"), "called %s", first.Name)
}

func dryCreate(t *trial) {
	dry := must(t.events().Create(t, t.sample("dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	equal("name", dry.Name, "dry")
	_, err := t.events().Get(t, "dry", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "got %v", err)
}

func createWithVersion(t *trial) {
	event := t.sample("versioned", func(event *eventsv1.Event) { event.ResourceVersion = "5" })
	_, err := t.events().Create(t, event, metav1.CreateOptions{})
	check(err != nil && strings.Contains(err.Error(), "resourceVersion should not be set"), "got %v", err)
}

func outdatedUpdate(t *trial) {
	event := t.create("raced")
	first := event.DeepCopy()
	first.Series = seriesOf(2)
	must(t.events().Update(t, first, metav1.UpdateOptions{}))
	second := event.DeepCopy()
	second.Series = seriesOf(3)
	_, err := t.events().Update(t, second, metav1.UpdateOptions{})
	check(apierrors.IsConflict(err), "got %v", err)
}

func creatingUpdate(t *trial) {
	created := must(t.events().Update(t, t.sample("by-put"), metav1.UpdateOptions{}))
	check(created.UID != "", "no uid")
	sameEvent("read", must(t.events().Get(t, "by-put", metav1.GetOptions{})), created)
}

func unchangedUpdate(t *trial) {
	event := t.create("still")
	again := must(t.events().Update(t, event.DeepCopy(), metav1.UpdateOptions{}))
	equal("version", again.ResourceVersion, event.ResourceVersion)
}

func dryUpdate(t *trial) {
	event := t.create("kept")
	change := event.DeepCopy()
	change.Series = seriesOf(9)
	dry := must(t.events().Update(t, change, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}))
	equal("dry count", dry.Series.Count, int32(9))
	sameEvent("kept", must(t.events().Get(t, "kept", metav1.GetOptions{})), event)
}

func deleteOtherUID(t *trial) {
	event := t.create("mine")
	other := metav1.NewUIDPreconditions("another")
	err := t.events().Delete(t, "mine", metav1.DeleteOptions{Preconditions: other})
	check(apierrors.IsConflict(err), "got %v", err)
	right := metav1.Preconditions{UID: &event.UID}
	mustNot(t.events().Delete(t, "mine", metav1.DeleteOptions{Preconditions: &right}))
}

func deleteOtherVersion(t *trial) {
	event := t.create("moved")
	change := event.DeepCopy()
	change.Series = seriesOf(2)
	moved := must(t.events().Update(t, change, metav1.UpdateOptions{}))
	at := func(version string) metav1.DeleteOptions {
		return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To(version)}}
	}
	err := t.events().Delete(t, "moved", at(event.ResourceVersion))
	check(apierrors.IsConflict(err), "got %v", err)
	mustNot(t.events().Delete(t, "moved", at(moved.ResourceVersion)))
}

func deleteHeld(t *trial) {
	t.create("held", func(event *eventsv1.Event) { event.Finalizers = []string{"example.com/held"} })
	mustNot(t.events().Delete(t, "held", metav1.DeleteOptions{}))
	held := must(t.events().Get(t, "held", metav1.GetOptions{}))
	check(held.DeletionTimestamp != nil, "not marked")
	held.Finalizers = nil
	must(t.events().Update(t, held, metav1.UpdateOptions{}))
	_, err := t.events().Get(t, "held", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "got %v", err)
}

func dryDelete(t *trial) {
	event := t.create("safe")
	mustNot(t.events().Delete(t, "safe", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	sameEvent("safe", must(t.events().Get(t, "safe", metav1.GetOptions{})), event)
}

func deleteByField(t *trial) {
	t.createMany("quiet-1", "quiet-2")
	t.create("loud", func(event *eventsv1.Event) { event.Type = "Warning" })
	loud := metav1.ListOptions{FieldSelector: "type=Warning"}
	mustNot(t.events().DeleteCollection(t, metav1.DeleteOptions{}, loud))
	left := must(t.events().List(t, metav1.ListOptions{}))
	equal("left", namesOf(left.Items), []string{"quiet-1", "quiet-2"})
}
