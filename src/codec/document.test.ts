import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StatusError } from '../api/status.ts'
import { documentText } from './document.ts'

describe('documentText', () => {
  const status = new StatusError(
    'NotAcceptable',
    'only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch',
  ).status()

  it('is compact JSON with a newline, or indented JSON without', () => {
    const mediaType = 'application/json'
    assert.equal(
      documentText({ mediaType, isPretty: false }, status),
      `${JSON.stringify(status)}\n`,
    )
    assert.equal(
      documentText({ mediaType, isPretty: true }, status),
      JSON.stringify(status, undefined, 2),
    )
  })

  it('is YAML, whether it is to be indented or not', () => {
    for (const isPretty of [false, true]) {
      assert.equal(
        documentText({ mediaType: 'application/yaml', isPretty }, status),
        "apiVersion: v1\ncode: 406\nkind: Status\nmessage: 'only the following media types are accepted: application/json;stream=watch,\n  application/vnd.kubernetes.protobuf;stream=watch'\nmetadata: {}\nreason: NotAcceptable\nstatus: Failure\n",
      )
    }
  })

  it('leaves out what is not set', () => {
    const document = { metadata: { continue: undefined } }
    assert.equal(
      documentText({ mediaType: 'application/yaml', isPretty: false }, document),
      'metadata: {}\n',
    )
  })
})
