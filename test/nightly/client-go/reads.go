package main

import (
	"fmt"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

var readCases = []testCase{
	{"list: label selectors of every kind", labelSelectors},
	{"list: field selectors of every field", fieldSelectors},
	{"list: all namespaces hold that of one", allNamespaces},
	{"list: at least version 0 shows what was just written", listAtZero},
	{"list: exactly an old version shows what was there then", listExactly},
	{"list: a version that is still to come is a timeout", listAhead},
	{"get: a version that was seen is served", getAtVersion},
}

var pagingCases = []testCase{
	{"paging: pages of 17 are of one version, in order, with what remains", pages},
	{"paging: a write in between is not seen on later pages", pagesAreSnapshots},
	{"paging: a selector applies to every page", pagesOfSelected},
	{"paging: the pager of client-go walks them all", pagerWalks},
	{"paging: a broken token is BadRequest", brokenToken},
}

const manyEvents = 40

func (t *trial) createNumbered(count int) []string {
	var names []string
	for index := range count {
		name := fmt.Sprintf("event-%04d", index)
		t.create(name, labelled("half", fmt.Sprint(index%2)))
		names = append(names, name)
	}
	return names
}

func labelSelectors(t *trial) {
	t.create("a", labelled("tier", "front"))
	t.create("b", labelled("tier", "back"))
	t.create("c")
	for selector, want := range map[string][]string{
		"tier=front":             {"a"},
		"tier!=front":            {"b", "c"},
		"tier in (front,back)":   {"a", "b"},
		"tier notin (front)":     {"b", "c"},
		"tier":                   {"a", "b"},
		"!tier":                  {"c"},
		"tier,tier notin (back)": {"a"},
	} {
		found := must(t.events().List(t, metav1.ListOptions{LabelSelector: selector}))
		equal(selector, namesOf(found.Items), want)
	}
}

func fieldSelectors(t *trial) {
	t.create("plain")
	t.create("special", func(event *eventsv1.Event) {
		event.Type = "Warning"
		event.Reason = "Odd"
		event.ReportingController = "another"
		event.Regarding = t.reference("db-0")
		event.Regarding.FieldPath = "spec.containers{db}"
		event.Regarding.ResourceVersion = "77"
		event.Regarding.Kind = "Other"
		event.Regarding.APIVersion = "example/v1"
	})
	for _, selector := range []string{
		"metadata.name=special",
		"metadata.name!=plain",
		"metadata.namespace=" + t.namespace + ",type=Warning",
		"reason=Odd",
		"reportingController=another",
		"regarding.name=db-0",
		"regarding.kind=Other",
		"regarding.apiVersion=example/v1",
		"regarding.namespace=" + t.namespace + ",regarding.name!=web-0",
		"regarding.uid=uid-of-db-0",
		"regarding.resourceVersion=77",
		"regarding.fieldPath=spec.containers{db}",
	} {
		found := must(t.events().List(t, metav1.ListOptions{FieldSelector: selector}))
		equal(selector, namesOf(found.Items), []string{"special"})
	}
}

func allNamespaces(t *trial) {
	t.createMany("here")
	there := *t
	there.namespace = t.namespace + "-too"
	there.create("there", labelled("suite", t.namespace))
	found := must(t.typed.EventsV1().Events("").List(t, metav1.ListOptions{LabelSelector: "suite=" + t.namespace}))
	names := namesOf(found.Items)
	slices.Sort(names)
	equal("names", names, []string{"here", "there"})
}

func listAtZero(t *trial) {
	event := t.create("now")
	t.eventually("version 0 shows it", func() bool {
		return len(must(t.events().List(t, metav1.ListOptions{ResourceVersion: "0"})).Items) == 1
	})
	found := must(t.events().List(t, metav1.ListOptions{ResourceVersion: event.ResourceVersion}))
	equal("at its own version", namesOf(found.Items), []string{"now"})
}

func listExactly(t *trial) {
	t.create("first")
	then := t.version()
	t.create("second")
	found := must(t.events().List(t, metav1.ListOptions{
		ResourceVersion:      then,
		ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}))
	equal("then", namesOf(found.Items), []string{"first"})
	equal("version", found.ResourceVersion, then)
}

func listAhead(t *trial) {
	list := must(t.events().List(t, metav1.ListOptions{}))
	_, err := t.events().List(t, metav1.ListOptions{ResourceVersion: "9" + list.ResourceVersion})
	check(apierrors.IsTimeout(err), "got %v", err)
	check(apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "got %v", err)
}

func getAtVersion(t *trial) {
	event := t.create("seen")
	// Its own version first: with 0 the server may return a slightly older state.
	for _, version := range []string{event.ResourceVersion, "0"} {
		sameEvent(version, must(t.events().Get(t, "seen", metav1.GetOptions{ResourceVersion: version})), event)
	}
}

func pages(t *trial) {
	want := t.createNumbered(manyEvents)
	var found []string
	var version string
	options := metav1.ListOptions{Limit: 17}
	for {
		page := must(t.events().List(t, options))
		if version == "" {
			version = page.ResourceVersion
		}
		equal("version", page.ResourceVersion, version)
		found = append(found, namesOf(page.Items)...)
		if page.Continue == "" {
			check(page.RemainingItemCount == nil, "the last page has something remaining")
			break
		}
		equal("remaining", int(*page.RemainingItemCount), manyEvents-len(found))
		options.Continue = page.Continue
	}
	equal("all", found, want)
}

func pagesAreSnapshots(t *trial) {
	want := t.createNumbered(6)
	first := must(t.events().List(t, metav1.ListOptions{Limit: 3}))
	t.create("event-9999")
	mustNot(t.events().Delete(t, want[5], metav1.DeleteOptions{}))
	second := must(t.events().List(t, metav1.ListOptions{Limit: 9, Continue: first.Continue}))
	equal("second page", namesOf(second.Items), want[3:])
}

func pagesOfSelected(t *trial) {
	t.createNumbered(12)
	var found []string
	options := metav1.ListOptions{Limit: 2, LabelSelector: "half=1"}
	for {
		page := must(t.events().List(t, options))
		found = append(found, namesOf(page.Items)...)
		if options.Continue = page.Continue; page.Continue == "" {
			break
		}
	}
	equal("selected", found, []string{
		"event-0001", "event-0003", "event-0005", "event-0007", "event-0009", "event-0011",
	})
}

func pagerWalks(t *trial) {
	want := t.createNumbered(10)
	walk := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return t.events().List(t, options)
	}))
	walk.PageSize = 3
	var found []string
	mustNot(walk.EachListItem(t, metav1.ListOptions{}, func(object runtime.Object) error {
		found = append(found, object.(*eventsv1.Event).Name)
		return nil
	}))
	equal("all", found, want)
}

func brokenToken(t *trial) {
	_, err := t.events().List(t, metav1.ListOptions{Limit: 1, Continue: "nonsense"})
	check(apierrors.IsBadRequest(err), "got %v", err)
}
