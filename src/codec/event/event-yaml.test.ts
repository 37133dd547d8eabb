import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import { decodeEventYaml } from './event-yaml.ts'

const options = eventsGroup('events.k8s.io')

test('decodeEventYaml decodes an event and reports repeated names before unknown ones', () => {
  const body = `apiVersion: events.k8s.io/v1
kind: Event
metadata:
  name: yml
  odd: 1
reason: R
reason: S
regarding: {kind: Pod, namespace: ns}
`
  deepEqual(decodeEventYaml(Buffer.from(body), options), {
    event: { metadata: { name: 'yml' }, reason: 'S', regarding: { kind: 'Pod', namespace: 'ns' } },
    problems: ['line 7: key "reason" already set in map', 'unknown field "metadata.odd"'],
  })
})

test('decodeEventYaml decodes JSON, and an empty body as an empty event', () => {
  deepEqual(decodeEventYaml(Buffer.from('{"note":"x","note":"y"}'), options), {
    event: { metadata: {}, note: 'y' },
    problems: ['duplicate field "note"'],
  })
  deepEqual(decodeEventYaml(Buffer.from(''), options).event, { metadata: {} })
})

test('decodeEventYaml rejects a body that is not YAML or not an event', () => {
  const refusal = (body: string): StatusError => {
    let refused: unknown
    throws(
      () => decodeEventYaml(Buffer.from(body), options),
      (error) => {
        refused = error
        return error instanceof StatusError
      },
    )
    return refused as StatusError
  }
  const { code, message } = refusal('a: [b')
  equal(code, 400)
  ok(
    message.startsWith(
      'the object provided is unrecognized (must be of type Event): yaml: line 1: ',
    ),
  )
  ok(message.endsWith(' (613a205b62)'))
  equal(
    refusal('metadata:\n  labels: {a: yes}\n').message,
    'Event in version "v1" cannot be handled as a Event: json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string',
  )
  equal(refusal(`a: ${'x'.repeat(70_000)}`).code, 413)
})
