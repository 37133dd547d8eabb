import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../api/status.ts'
import { decodeReview } from './review-protobuf.ts'
import { ProtobufError } from './struct/protobuf-struct.ts'

function field(number: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  assert.ok(bytes.length < 128)
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes])
}

function review(kind: string, spec: Buffer): Buffer {
  const meta = Buffer.concat([field(1, 'authorization.k8s.io/v1'), field(2, kind)])
  const raw = Buffer.concat([field(1, field(1, '')), field(2, spec), field(3, Buffer.from([8, 0]))])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, meta), field(2, raw), field(4, '')])
}

describe('decodeReview', () => {
  test('a review of access to a resource is decoded', () => {
    const attributes = Buffer.concat([
      field(1, 'a'),
      field(2, 'get'),
      field(5, 'events'),
      field(15, ''),
    ])
    assert.deepEqual(decodeReview(review('SelfSubjectAccessReview', field(1, attributes))), {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace: 'a', verb: 'get', resource: 'events' } },
    })
  })

  test('reviews of a path and of rules are decoded, and one without a spec', () => {
    const path = field(2, Buffer.concat([field(1, '/metrics'), field(2, 'get')]))
    assert.deepEqual(decodeReview(review('SelfSubjectAccessReview', path))['spec'], {
      nonResourceAttributes: { path: '/metrics', verb: 'get' },
    })
    assert.deepEqual(decodeReview(review('SelfSubjectRulesReview', field(1, 'a')))['spec'], {
      namespace: 'a',
    })
    assert.equal(decodeReview(review('SelfSubjectReview', path))['spec'], undefined)
  })

  test('any bytes are either decoded or rejected', () => {
    const whole = review('SelfSubjectAccessReview', field(1, field(2, 'get')))
    const broken = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.concat([Buffer.from('k8s\0'), bytes])),
      fc.nat(whole.length).map((length) => whole.subarray(0, length)),
      fc.tuple(fc.nat(whole.length - 1), fc.nat(255)).map(([at, byte]) => {
        const changed = Buffer.from(whole)
        changed[at] = byte
        return changed
      }),
    )
    fc.assert(
      fc.property(broken, (bytes) => {
        try {
          decodeReview(bytes)
        } catch (error) {
          assert.ok(error instanceof ProtobufError || error instanceof StatusError)
        }
      }),
    )
    assert.throws(() => decodeReview(Buffer.from('{}')), ProtobufError)
  })
})
