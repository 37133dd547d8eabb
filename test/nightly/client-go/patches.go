package main

import (
	"encoding/json"
	"fmt"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applyeventsv1 "k8s.io/client-go/applyconfigurations/events/v1"
)

var patchCases = []testCase{
	{"patch: JSON patch", jsonPatch},
	{"patch: merge patch removes with null", mergePatch},
	{"patch: strategic merge patch keeps the labels it does not name", strategicPatch},
	{"patch: a strategic merge of finalizers adds to the set", strategicFinalizers},
	{"patch: a name that is not there is a 404", patchMissing},
	{"patch: a JSON patch whose test fails is invalid", failedTest},
	{"patch: a patch that changes nothing keeps the version", emptyPatch},
	{"patch: a patch with an outdated version is a conflict", outdatedPatch},
	{"patch: many at once all arrive without conflict", concurrentPatches},
}

// applyCases need server-side apply.
var applyCases = []testCase{
	{"apply: creates, and owns what it applied", applyCreates},
	{"apply: the same again keeps the version", applyAgain},
	{"apply: a field of another manager is a conflict, and force takes it", applyConflict},
	{"apply: a label no longer applied is removed", applyRemoves},
}

func (t *trial) patch(name string, kind types.PatchType, patch string) (*eventsv1.Event, error) {
	return t.events().Patch(t, name, kind, []byte(patch), metav1.PatchOptions{})
}

func jsonPatch(t *trial) {
	t.create("json")
	patched := must(t.patch("json", types.JSONPatchType,
		`[{"op":"add","path":"/metadata/labels/added","value":"yes"},{"op":"remove","path":"/metadata/labels/suite"}]`))
	equal("labels", patched.Labels, map[string]string{"added": "yes"})
}

func mergePatch(t *trial) {
	t.create("merge", labelled("going", "soon"))
	patched := must(t.patch("merge", types.MergePatchType, `{"metadata":{"labels":{"going":null,"here":"now"}}}`))
	equal("labels", patched.Labels, map[string]string{"suite": t.namespace, "here": "now"})
}

func strategicPatch(t *trial) {
	t.create("strategic")
	patched := must(t.patch("strategic", types.StrategicMergePatchType, `{"metadata":{"labels":{"more":"of-it"}}}`))
	equal("labels", patched.Labels, map[string]string{"suite": t.namespace, "more": "of-it"})
}

func strategicFinalizers(t *trial) {
	t.create("final", func(event *eventsv1.Event) { event.Finalizers = []string{"example.com/a"} })
	patched := must(t.patch("final", types.StrategicMergePatchType, `{"metadata":{"finalizers":["example.com/b"]}}`))
	equal("how many", len(patched.Finalizers), 2)
}

func patchMissing(t *trial) {
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		_, err := t.patch("nobody", kind, `{"metadata":{"labels":{"a":"b"}}}`)
		check(apierrors.IsNotFound(err), "%s: got %v", kind, err)
	}
}

func failedTest(t *trial) {
	t.create("tested")
	_, err := t.patch("tested", types.JSONPatchType, `[{"op":"test","path":"/reason","value":"Other"}]`)
	check(apierrors.IsInvalid(err), "got %v", err)
}

func emptyPatch(t *trial) {
	event := t.create("same")
	patched := must(t.patch("same", types.MergePatchType, `{"reason":"Tested"}`))
	equal("version", patched.ResourceVersion, event.ResourceVersion)
}

func outdatedPatch(t *trial) {
	t.create("old")
	_, err := t.patch("old", types.MergePatchType, `{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`)
	check(apierrors.IsConflict(err), "got %v", err)
}

func concurrentPatches(t *trial) {
	const writers = 16
	t.create("shared")
	errors := make([]error, writers)
	var done sync.WaitGroup
	for writer := range writers {
		done.Add(1)
		go func() {
			defer done.Done()
			patch := fmt.Sprintf(`{"metadata":{"labels":{"writer-%d":"was-here"}}}`, writer)
			_, errors[writer] = t.patch("shared", types.StrategicMergePatchType, patch)
		}()
	}
	done.Wait()
	for _, err := range errors {
		mustNot(err)
	}
	got := must(t.events().Get(t, "shared", metav1.GetOptions{}))
	equal("labels", len(got.Labels), writers+1)
}

func (t *trial) applied(name string) *applyeventsv1.EventApplyConfiguration {
	event := t.sample(name)
	return applyeventsv1.Event(name, t.namespace).
		WithEventTime(event.EventTime).
		WithReportingController(controller).
		WithReportingInstance(controller + "-0").
		WithAction("Testing").
		WithReason("Tested").
		WithType("Normal").
		WithRegarding(applycorev1.ObjectReference().WithKind("Pod").WithName("web-0").WithNamespace(t.namespace)).
		WithLabels(map[string]string{"colour": "red"})
}

func applyCreates(t *trial) {
	created := must(t.events().Apply(t, t.applied("applied"), metav1.ApplyOptions{FieldManager: "first"}))
	equal("owners", len(created.ManagedFields), 1)
	equal("owner", created.ManagedFields[0].Manager, "first")
	equal("operation", created.ManagedFields[0].Operation, metav1.ManagedFieldsOperationApply)
	check(json.Valid(created.ManagedFields[0].FieldsV1.Raw), "fields: %s", created.ManagedFields[0].FieldsV1.Raw)
}

func applyAgain(t *trial) {
	configuration := t.applied("again")
	first := must(t.events().Apply(t, configuration, metav1.ApplyOptions{FieldManager: "first"}))
	second := must(t.events().Apply(t, configuration, metav1.ApplyOptions{FieldManager: "first"}))
	equal("version", second.ResourceVersion, first.ResourceVersion)
}

func applyConflict(t *trial) {
	must(t.events().Apply(t, t.applied("fought"), metav1.ApplyOptions{FieldManager: "first"}))
	other := applyeventsv1.Event("fought", t.namespace).WithLabels(map[string]string{"colour": "blue"})
	_, err := t.events().Apply(t, other, metav1.ApplyOptions{FieldManager: "second"})
	check(apierrors.IsConflict(err), "got %v", err)
	causes := err.(*apierrors.StatusError).ErrStatus.Details.Causes
	equal("causes", len(causes), 1)
	equal("cause", causes[0].Type, metav1.CauseTypeFieldManagerConflict)
	equal("field", causes[0].Field, ".metadata.labels.colour")
	taken := must(t.events().Apply(t, other, metav1.ApplyOptions{FieldManager: "second", Force: true}))
	equal("colour", taken.Labels["colour"], "blue")
}

func applyRemoves(t *trial) {
	must(t.events().Apply(t, t.applied("fewer"), metav1.ApplyOptions{FieldManager: "first"}))
	fewer := t.applied("fewer")
	fewer.Labels = nil
	event := must(t.events().Get(t, "fewer", metav1.GetOptions{}))
	fewer.WithEventTime(event.EventTime)
	left := must(t.events().Apply(t, fewer, metav1.ApplyOptions{FieldManager: "first"}))
	equal("labels", len(left.Labels), 0)
}
