import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Answer } from './client.ts'
import { PLACE, rightAnswer, withBody } from './made-answers.ts'
import { recordedAnswer } from './recorded-answer.ts'
import { type Expected, loadRecording, type Step, SUITES } from './recording.ts'

const READ: Step = { method: 'GET', path: '/e', answer: { status: 200, json: {} } }

/** The response of Kubernetes. */
function theirAnswer({ ours: _, ...step }: Step): Answer {
  return rightAnswer(step, (tree) => tree)
}

function recorded(step: Step, answer: Answer, hasManagedFields = false): Expected {
  return recordedAnswer(step, answer, { ...PLACE, hasManagedFields })
}

describe('recordedAnswer', () => {
  for (const suite of SUITES) {
    test(`${suite}: equal responses leave the recording as it is`, () => {
      for (const [index, step] of loadRecording(suite).steps.entries()) {
        const answer = theirAnswer(step)
        assert.equal(recorded(step, answer, suite === 'apply'), step.answer, `step ${index}`)
        const other = { ...answer, status: 599 }
        assert.equal(recorded(step, other, suite === 'apply').status, 599, `step ${index}`)
      }
    })
  }

  test('placeholders replace what a server chooses', () => {
    const body = { metadata: { namespace: PLACE.namespace, resourceVersion: '71' }, note: 'n' }
    assert.deepEqual(recorded(READ, withBody(theirAnswer(READ), JSON.stringify(body))), {
      status: 200,
      json: { metadata: { namespace: '<ns>', resourceVersion: '<rv>' }, note: 'n' },
    })
  })

  test('headers are recorded where they are unusual', () => {
    const answer = theirAnswer(READ)
    const headers = { 'content-type': 'text/plain', warning: '299 - "w"', date: 'today' }
    assert.deepEqual(recorded(READ, { ...withBody(answer, 'ok'), headers }), {
      status: 200,
      headers: { 'content-type': 'text/plain', 'cache-control': null, warning: '299 - "w"' },
      text: 'ok',
    })
  })

  test('managedFields are recorded only in the suite of applies', () => {
    const body = { metadata: { managedFields: [{ manager: 'm' }] } }
    const answer = withBody(theirAnswer(READ), JSON.stringify(body))
    assert.deepEqual(recorded(READ, answer).json, { metadata: {} })
    assert.deepEqual(recorded(READ, answer, true).json, body)
  })

  test('a stream is recorded line by line, and whether the server ended it where that was', () => {
    const step: Step = { ...READ, watchMs: 700 }
    const answer = { ...withBody(theirAnswer(READ), '{"type":"ADDED"}\n{}\n'), ended: false }
    const frames = [{ type: 'ADDED' }, {}]
    assert.deepEqual(recorded(step, answer), { status: 200, frames })
    const ending: Step = { ...step, answer: { status: 200, ends: true } }
    assert.deepEqual(recorded(ending, answer), { status: 200, frames, ends: false })
  })

  test('the layout is recorded where it was', () => {
    const step: Step = { ...READ, answer: { ...READ.answer, layout: 'compact' } }
    const answer = withBody(theirAnswer(READ), '{\n  "kind": "Event"\n}')
    assert.equal(recorded(step, answer).layout, 'pretty')
    assert.equal(recorded(READ, answer).layout, undefined)
  })

  test('the list that depends on other stored objects is recorded for its status and kind', () => {
    const json = { kind: 'EventList', items: [] }
    const step: Step = { ...READ, match: 'status-and-kind', answer: { status: 200, json } }
    const answer = withBody(theirAnswer(READ), '{"kind":"EventList","items":[{}]}')
    assert.equal(recorded(step, answer), step.answer)
    assert.notEqual(recorded(step, withBody(answer, '{"kind":"Status"}')), step.answer)
  })
})
