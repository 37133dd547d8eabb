package main

import (
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// errorCases check errors the way a controller does: with the functions of api/errors.
var errorCases = []testCase{
	{"errors: a taken name is AlreadyExists", takenName},
	{"errors: a missing name is NotFound, with the kind and name in its details", missingName},
	{"errors: an invalid event is Invalid, with a cause for each field", invalidEvent},
	{"errors: fields that may not change are Invalid", immutableFields},
	{"errors: another namespace than that of the path is BadRequest", otherNamespace},
	{"errors: an unknown field selector is BadRequest", unknownSelector},
	{"errors: a wrong token is Unauthorized", wrongToken},
	{"errors: deleting what is not there is NotFound", deleteMissing},
	{"errors: a name in the body that is not that of the path is BadRequest", otherName},
	{"errors: an event past the size limit is RequestEntityTooLarge", tooLarge},
}

func takenName(t *trial) {
	t.create("taken")
	_, err := t.events().Create(t, t.sample("taken"), metav1.CreateOptions{})
	check(apierrors.IsAlreadyExists(err), "got %v", err)
}

func missingName(t *trial) {
	_, err := t.events().Get(t, "nobody", metav1.GetOptions{})
	check(apierrors.IsNotFound(err), "got %v", err)
	details := statusOf(err).Details
	equal("name", details.Name, "nobody")
	equal("kind", details.Kind, "events")
	equal("group", details.Group, "events.k8s.io")
	equal("code", statusOf(err).Code, int32(404))
}

func invalidEvent(t *trial) {
	event := t.sample("invalid", func(event *eventsv1.Event) {
		event.Reason = ""
		event.Action = strings.Repeat("a", 129)
		event.Type = "Odd"
	})
	_, err := t.events().Create(t, event, metav1.CreateOptions{})
	check(apierrors.IsInvalid(err), "got %v", err)
	var fields []string
	for _, cause := range statusOf(err).Details.Causes {
		fields = append(fields, cause.Field)
	}
	equal("fields", fields, []string{"action", "reason", "type"})
}

func immutableFields(t *trial) {
	event := t.create("fixed")
	event.Note = "changed"
	_, err := t.events().Update(t, event, metav1.UpdateOptions{})
	check(apierrors.IsInvalid(err), "got %v", err)
	check(strings.Contains(err.Error(), "field is immutable"), "got %v", err)
}

func otherNamespace(t *trial) {
	event := t.sample("astray", func(event *eventsv1.Event) { event.Namespace = "elsewhere" })
	_, err := t.events().Create(t, event, metav1.CreateOptions{})
	check(apierrors.IsBadRequest(err), "got %v", err)
}

func unknownSelector(t *trial) {
	_, err := t.events().List(t, metav1.ListOptions{FieldSelector: "spec.colour=red"})
	check(apierrors.IsBadRequest(err), "got %v", err)
}

func wrongToken(t *trial) {
	config := rest.CopyConfig(t.config)
	config.BearerToken = "not-a-token"
	stranger := must(kubernetes.NewForConfig(config))
	_, err := stranger.EventsV1().Events(t.namespace).List(t, metav1.ListOptions{})
	check(apierrors.IsUnauthorized(err), "got %v", err)
}

func deleteMissing(t *trial) {
	err := t.events().Delete(t, "nobody", metav1.DeleteOptions{})
	check(apierrors.IsNotFound(err), "got %v", err)
}

func otherName(t *trial) {
	event := t.create("right")
	event.Name = "wrong"
	err := t.typed.EventsV1().RESTClient().Put().
		Namespace(t.namespace).Resource("events").Name("right").Body(event).Do(t).Error()
	check(apierrors.IsBadRequest(err), "got %v", err)
}

func tooLarge(t *trial) {
	event := t.sample("huge", func(event *eventsv1.Event) {
		event.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 4<<20)}}
	})
	_, err := t.events().Create(t, event, metav1.CreateOptions{})
	check(apierrors.IsRequestEntityTooLargeError(err), "got %v", err)
}

func statusOf(err error) metav1.Status {
	status, isStatus := err.(apierrors.APIStatus)
	check(isStatus, "%T is not a status: %v", err, err)
	return status.Status()
}
