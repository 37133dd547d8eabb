import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../api/status.ts'
import { decodeDeleteOptions } from './delete-options.ts'

function refusal(body: string, mediaType: 'json' | 'yaml' = 'json'): string {
  try {
    decodeDeleteOptions(Buffer.from(body), mediaType)
  } catch (error) {
    ok(error instanceof StatusError)
    equal(error.code, 400)
    return error.message
  }
  throw new Error('the body was accepted')
}

test('decodeDeleteOptions accepts options of any API version', () => {
  const body = {
    kind: 'DeleteOptions',
    apiVersion: 'x/y',
    gracePeriodSeconds: 0,
    preconditions: { uid: 'u', resourceVersion: '1' },
    orphanDependents: false,
    propagationPolicy: 'Background',
    dryRun: ['All'],
    unknown: 1,
  }
  deepEqual(decodeDeleteOptions(Buffer.from(JSON.stringify(body)), 'json'), {
    gracePeriodSeconds: 0,
    preconditions: { uid: 'u', resourceVersion: '1' },
    orphanDependents: false,
    propagationPolicy: 'Background',
    dryRun: ['All'],
  })
})

test('decodeDeleteOptions decodes YAML, and an empty body as no options', () => {
  deepEqual(
    decodeDeleteOptions(Buffer.from('dryRun: [All]\npreconditions:\n  uid: "5"\n'), 'yaml'),
    {
      dryRun: ['All'],
      preconditions: { uid: '5' },
    },
  )
  deepEqual(decodeDeleteOptions(Buffer.from('{}'), 'json'), {})
  deepEqual(decodeDeleteOptions(Buffer.from('null'), 'json'), {})
})

test('decodeDeleteOptions rejects bodies that are not delete options', () => {
  equal(refusal('{'), "couldn't get version/kind; json parse error: unexpected end of JSON input")
  ok(refusal('{"kind":"Pod"}').startsWith('no kind "Pod" is registered'))
  ok(refusal('[]').includes('cannot unmarshal array'))
  ok(refusal('{"kind":{"toString":null}}').includes('cannot unmarshal object'))
  ok(refusal('{"kind":["DeleteOptions"]}').includes('cannot unmarshal array'))
  ok(refusal('apiVersion: 1e3', 'yaml').includes('cannot unmarshal number'))
  ok(refusal('{"apiVersion":false,"kind":[]}').includes('field .apiVersion of type string'))
  ok(refusal('a: [', 'yaml').startsWith('yaml: line 1: '))
  equal(
    refusal('{"dryRun":"All"}'),
    'json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string',
  )
})

test('decodeDeleteOptions decodes ignoreStoreReadErrorWithClusterBreakingPotential as a boolean', () => {
  const name = 'ignoreStoreReadErrorWithClusterBreakingPotential'
  deepEqual(decodeDeleteOptions(Buffer.from(`{"${name}":true}`), 'json'), { [name]: true })
  equal(
    refusal(`{"${name}":"yes"}`),
    `json: cannot unmarshal string into Go struct field DeleteOptions.${name} of type bool`,
  )
  const message = (...raw: number[]): Buffer =>
    Buffer.concat([Buffer.from('k8s\0'), Buffer.from([0x12, raw.length, ...raw])])
  deepEqual(decodeDeleteOptions(message(6 << 3, 1), 'protobuf'), { [name]: true })
  throws(() => decodeDeleteOptions(message((6 << 3) | 2, 1, 1), 'protobuf'), { code: 400 })
})

test('decodeDeleteOptions keeps empty strings, since they match no object', () => {
  const empty = { preconditions: { uid: '', resourceVersion: '' }, propagationPolicy: '' }
  deepEqual(decodeDeleteOptions(Buffer.from(JSON.stringify(empty)), 'json'), empty)
  const yaml = 'preconditions: {uid: "", resourceVersion: ""}\npropagationPolicy: ""\n'
  deepEqual(decodeDeleteOptions(Buffer.from(yaml), 'yaml'), empty)
  const raw = [(2 << 3) | 2, 4, (1 << 3) | 2, 0, (2 << 3) | 2, 0, (4 << 3) | 2, 0]
  const message = Buffer.concat([Buffer.from('k8s\0'), Buffer.from([0x12, raw.length, ...raw])])
  deepEqual(decodeDeleteOptions(message, 'protobuf'), empty)
})

test('decodeDeleteOptions treats a null precondition as unset', () => {
  const body = '{"preconditions":{"uid":null,"resourceVersion":null},"propagationPolicy":null}'
  deepEqual(decodeDeleteOptions(Buffer.from(body), 'json'), { preconditions: {} })
})
