/** Events of every shape that the API can store, written through it. */
import type { EventClient } from '../support/event-client.ts'
import { makeEvent, type WireEvent } from '../support/wire-event.ts'
import { CORE_API, EVENTS_API, succeed } from './release-site.ts'

export type EventsWriter = (event: WireEvent) => Promise<void>

const NAMESPACE = 'shapes'
const JSON_TYPE = 'application/json'
const TIME = '2026-11-01T11:59:00Z'
const MICRO_TIME = '2026-11-01T11:59:00.123456Z'

export async function writeShapes(client: EventClient): Promise<void> {
  for (const event of newEvents()) await send(client, 'POST', EVENTS_API, { body: event })
  for (const event of coreEvents()) await send(client, 'POST', CORE_API, { body: event })
  await change(client)
  await apply(client)
  await endings(client)
}

/** Events in the form of events.k8s.io/v1. */
function newEvents(): readonly WireEvent[] {
  const make = (name: string, fields: Readonly<Record<string, unknown>> = {}) =>
    makeEvent(NAMESPACE, name, fields)
  const full = make('all-fields', {
    labels: { app: 'web', 'example.org/tier': 'front' },
    type: 'Warning',
    note: 'all fields, ünïcödé 事件 🎉 "quoted" \\ and a\nnew line',
    related: { apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: 'node-1-uid' },
    regarding: {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: NAMESPACE,
      name: 'web-0',
      uid: 'pod-uid',
      resourceVersion: '77',
      fieldPath: 'spec.containers{app}',
    },
    series: { count: 12, lastObservedTime: MICRO_TIME },
  })
  return [
    {
      ...full,
      metadata: {
        ...full.metadata,
        annotations: { 'example.org/trace': 'a=b; c="d"', empty: '' },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'owner-uid' },
        ],
      } as WireEvent['metadata'],
    },
    make('plain'),
    make('long-note', { note: 'n'.repeat(1024) }),
    make('no-note', { note: '' }),
    make('many-labels', {
      labels: Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`label-${n}`, `v${n}`])),
    }),
    make('old-and-odd.17f3', { eventTime: '1999-12-31T23:59:59.999999Z' }),
    make('patched'),
    make('merged'),
    make('strategic', { labels: { keep: 'yes', drop: 'yes' } }),
    make('updated'),
    make('ending'),
    make('deleted'),
  ]
}

/** Events in the form of core/v1, with the deprecated fields. */
function coreEvents(): readonly WireEvent[] {
  const base = {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject: { kind: 'Pod', namespace: NAMESPACE, name: 'web-1', apiVersion: 'v1' },
    reason: 'BackOff',
    message: 'Back-off restarting failed container',
    type: 'Warning',
  }
  return [
    {
      ...base,
      metadata: { name: 'core-counted', namespace: NAMESPACE },
      source: { component: 'kubelet', host: 'node-7' },
      firstTimestamp: '2026-11-01T11:00:00Z',
      lastTimestamp: TIME,
      count: 41,
    },
    { ...base, metadata: { name: 'core-bare', namespace: NAMESPACE } },
    {
      ...base,
      metadata: { generateName: 'core-generated-', namespace: NAMESPACE } as never,
      source: { component: 'scheduler' },
      firstTimestamp: TIME,
      lastTimestamp: TIME,
      count: 1,
    },
    {
      ...base,
      metadata: { name: 'core-new-style', namespace: NAMESPACE },
      eventTime: MICRO_TIME,
      action: 'Binding',
      reportingComponent: 'default-scheduler',
      reportingInstance: 'default-scheduler-0',
      series: { count: 3, lastObservedTime: MICRO_TIME },
    },
  ]
}

async function change(client: EventClient): Promise<void> {
  const patch = (name: string, type: string, body: unknown) =>
    send(client, 'PATCH', EVENTS_API, { name, type: `application/${type}+json`, body })
  await patch('patched', 'json-patch', [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }])
  await patch('merged', 'merge-patch', { metadata: { annotations: { a: 'b' } } })
  await patch('strategic', 'strategic-merge-patch', { metadata: { labels: { drop: null } } })
  const updated = makeEvent(NAMESPACE, 'updated', {
    series: { count: 2, lastObservedTime: MICRO_TIME },
  })
  await send(client, 'PUT', EVENTS_API, { name: 'updated', body: updated })
}

/** Field owners: one event that two managers applied, one that was applied and then updated. */
async function apply(client: EventClient): Promise<void> {
  const type = 'application/apply-patch+yaml'
  const applied = (name: string, labels: Readonly<Record<string, string>>) => ({
    body: makeEvent(NAMESPACE, name, { labels }),
    type,
  })
  const as = (manager: string) => `?fieldManager=${manager}&force=true`
  for (const [manager, labels] of [
    ['one', { a: 'one' }],
    ['two', { b: 'two' }],
  ] as const) {
    const call = applied('applied', labels)
    await send(client, 'PATCH', EVENTS_API, { ...call, name: `applied${as(manager)}` })
  }
  const call = applied('applied-and-patched', { a: 'one' })
  await send(client, 'PATCH', EVENTS_API, { ...call, name: `applied-and-patched${as('one')}` })
  await send(client, 'PATCH', CORE_API, {
    name: 'applied-and-patched?fieldManager=patcher',
    type: 'application/merge-patch+json',
    body: { message: 'patched as core/v1' },
  })
}

/** One event that waits for its finalizer, one that is gone. */
async function endings(client: EventClient): Promise<void> {
  await send(client, 'PATCH', EVENTS_API, {
    name: 'ending',
    type: 'application/merge-patch+json',
    body: { metadata: { finalizers: ['example.org/wait'] } },
  })
  await send(client, 'DELETE', EVENTS_API, { name: 'ending' })
  await send(client, 'DELETE', EVENTS_API, { name: 'deleted' })
}

async function send(
  client: EventClient,
  method: string,
  api: string,
  { name, type = JSON_TYPE, body }: { name?: string; type?: string; body?: unknown },
): Promise<void> {
  const collection = `/${api}/namespaces/${NAMESPACE}/events`
  await succeed(client, {
    method,
    path: name === undefined ? collection : `${collection}/${name}`,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': type }, body: JSON.stringify(body) }),
  })
}
