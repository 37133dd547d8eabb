import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StatusError } from '../api/status.ts'
import { documentBody } from './document.ts'

describe('documentBody', () => {
  const status = new StatusError(
    'NotAcceptable',
    'only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch',
  ).status()

  it('compact JSON ends with a newline, indented JSON does not', () => {
    const mediaType = 'application/json'
    assert.equal(
      documentBody({ mediaType, isPretty: false }, status),
      `${JSON.stringify(status)}\n`,
    )
    assert.equal(
      documentBody({ mediaType, isPretty: true }, status),
      JSON.stringify(status, undefined, 2),
    )
  })

  it('YAML is the same with and without pretty', () => {
    for (const isPretty of [false, true]) {
      assert.equal(
        documentBody({ mediaType: 'application/yaml', isPretty }, status),
        "apiVersion: v1\ncode: 406\nkind: Status\nmessage: 'only the following media types are accepted: application/json;stream=watch,\n  application/vnd.kubernetes.protobuf;stream=watch'\nmetadata: {}\nreason: NotAcceptable\nstatus: Failure\n",
      )
    }
  })

  it('omits undefined members', () => {
    const document = { metadata: { continue: undefined } }
    assert.equal(
      documentBody({ mediaType: 'application/yaml', isPretty: false }, document),
      'metadata: {}\n',
    )
  })
})
