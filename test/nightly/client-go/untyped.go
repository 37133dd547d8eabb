package main

import (
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

var (
	eventsResource = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	coreResource   = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

var dynamicCases = []testCase{
	{"dynamic: creates, reads, patches, watches and deletes", dynamicLife},
	{"dynamic: items of a list carry kind and version", dynamicList},
	{"dynamic: through core/v1 the same event has the old names", dynamicCore},
	{"dynamic: strict validation refuses an unknown field", dynamicStrict},
	{"dynamic: a warning comes with an unknown field", dynamicWarn},
	{"dynamic: strict validation refuses an unknown field in a patch", dynamicStrictPatch},
	{"dynamic: server-side apply of an unstructured object", dynamicApply},
	{"table: a list as a Table has its columns and a row for each", tableList},
}

// metadataCases use the client that garbage collectors and quota controllers use.
var metadataCases = []testCase{
	{"metadata: get and list bring metadata only", metadataReads},
	{"metadata: a watch brings metadata only", metadataWatch},
	{"metadata: patch and delete work", metadataWrites},
	{"metadata: pages", metadataPages},
}

func (t *trial) dynamicEvents() dynamic.ResourceInterface {
	return t.dynamic.Resource(eventsResource).Namespace(t.namespace)
}

func (t *trial) unstructured(name string) *unstructured.Unstructured {
	event := t.sample(name)
	event.APIVersion, event.Kind = "events.k8s.io/v1", "Event"
	content := must(runtime.DefaultUnstructuredConverter.ToUnstructured(event))
	for _, absent := range []string{"deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedSource"} {
		delete(content, absent)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}
}

func dynamicLife(t *trial) {
	from := must(t.dynamicEvents().Watch(t, metav1.ListOptions{ResourceVersion: t.version()}))
	defer from.Stop()
	created := must(t.dynamicEvents().Create(t, t.unstructured("loose"), metav1.CreateOptions{}))
	equal("added", t.next(from), watch.Event{Type: watch.Added, Object: created})
	got := must(t.dynamicEvents().Get(t, "loose", metav1.GetOptions{}))
	equal("read", got.Object, created.Object)
	patched := must(t.dynamicEvents().Patch(t, "loose", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{}))
	equal("modified", t.next(from), watch.Event{Type: watch.Modified, Object: patched})
	patched.SetLabels(map[string]string{"updated": "yes"})
	updated := must(t.dynamicEvents().Update(t, patched, metav1.UpdateOptions{}))
	equal("modified", t.next(from), watch.Event{Type: watch.Modified, Object: updated})
	mustNot(t.dynamicEvents().Delete(t, "loose", metav1.DeleteOptions{}))
	equal("deleted", t.next(from).Type, watch.Deleted)
}

func dynamicList(t *trial) {
	t.createMany("a", "b")
	list := must(t.dynamicEvents().List(t, metav1.ListOptions{}))
	equal("list", list.GetKind(), "EventList")
	equal("how many", len(list.Items), 2)
	for _, item := range list.Items {
		equal("kind", item.GroupVersionKind(), eventsv1.SchemeGroupVersion.WithKind("Event"))
	}
}

func dynamicCore(t *trial) {
	t.create("two-faced")
	got := must(t.dynamic.Resource(coreResource).Namespace(t.namespace).Get(t, "two-faced", metav1.GetOptions{}))
	equal("version", got.GetAPIVersion(), "v1")
	equal("message", got.Object["message"], any("this is two-faced"))
	name, _, _ := unstructured.NestedString(got.Object, "involvedObject", "name")
	equal("object", name, "web-0")
}

func dynamicStrict(t *trial) {
	event := t.unstructured("strict")
	event.Object["colour"] = "red"
	_, err := t.dynamicEvents().Create(t, event, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	check(apierrors.IsBadRequest(err), "got %v", err)
	check(strings.Contains(err.Error(), `strict decoding error: unknown field "colour"`), "got %v", err)
}

func dynamicWarn(t *trial) {
	event := t.unstructured("warned")
	event.Object["colour"] = "red"
	result := t.typed.EventsV1().RESTClient().Post().Namespace(t.namespace).Resource("events").
		Param("fieldValidation", metav1.FieldValidationWarn).
		Body(must(event.MarshalJSON())).SetHeader("Content-Type", jsonEncoding).Do(t)
	mustNot(result.Error())
	equal("warnings", len(result.Warnings()), 1)
	equal("warning", result.Warnings()[0].Text, `unknown field "colour"`)
}

func dynamicStrictPatch(t *trial) {
	t.create("strict")
	_, err := t.dynamicEvents().Patch(t, "strict", types.MergePatchType, []byte(`{"colour":"red"}`),
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	check(err != nil && strings.Contains(err.Error(), `unknown field "colour"`), "got %v", err)
}

func dynamicApply(t *trial) {
	applied := must(t.dynamicEvents().Apply(t, "loose", t.unstructured("loose"), metav1.ApplyOptions{FieldManager: "me"}))
	equal("manager", applied.GetManagedFields()[0].Manager, "me")
}

func tableList(t *trial) {
	t.createMany("a", "b")
	table := &metav1.Table{}
	mustNot(t.typed.EventsV1().RESTClient().Get().Namespace(t.namespace).Resource("events").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t).Into(table))
	equal("rows", len(table.Rows), 2)
	equal("columns", len(table.ColumnDefinitions), 10)
	equal("first column", table.ColumnDefinitions[0].Name, "Last Seen")
	equal("message", table.Rows[0].Cells[6], any("this is a"))
}

func metadataReads(t *trial) {
	event := t.create("meta")
	events := t.metadata.Resource(eventsResource).Namespace(t.namespace)
	got := must(events.Get(t, "meta", metav1.GetOptions{}))
	equal("uid", got.UID, event.UID)
	equal("labels", got.Labels, event.Labels)
	list := must(events.List(t, metav1.ListOptions{}))
	equal("how many", len(list.Items), 1)
	equal("version", list.Items[0].ResourceVersion, event.ResourceVersion)
	check(t.seen.protobuf.Load() > 2, "not in protobuf")
}

func metadataWatch(t *trial) {
	events := t.metadata.Resource(coreResource).Namespace(t.namespace)
	from := must(events.Watch(t, metav1.ListOptions{ResourceVersion: t.version()}))
	defer from.Stop()
	event := t.create("meta")
	added := t.next(from)
	equal("type", added.Type, watch.Added)
	object, isMetadata := added.Object.(*metav1.PartialObjectMetadata)
	check(isMetadata, "got a %T", added.Object)
	equal("uid", object.UID, event.UID)
}

func metadataWrites(t *trial) {
	t.create("meta")
	events := t.metadata.Resource(eventsResource).Namespace(t.namespace)
	patched := must(events.Patch(t, "meta", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
	equal("label", patched.Labels["a"], "b")
	mustNot(events.Delete(t, "meta", metav1.DeleteOptions{}))
	_, err := events.Get(t, "meta", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "got %v", err)
}

func metadataPages(t *trial) {
	t.createMany("a", "b", "c")
	events := t.metadata.Resource(eventsResource).Namespace(t.namespace)
	first := must(events.List(t, metav1.ListOptions{Limit: 2}))
	equal("remaining", *first.RemainingItemCount, int64(1))
	second := must(events.List(t, metav1.ListOptions{Limit: 2, Continue: first.Continue}))
	equal("last", second.Items[0].Name, "c")
}
