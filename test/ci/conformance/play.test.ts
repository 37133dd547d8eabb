import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Answer, Outgoing } from './client.ts'
import { rightAnswer } from './made-answers.ts'
import { type Player, play, type Result } from './play.ts'
import type { Recording, Step } from './recording.ts'
import { describeResult, describeSuite } from './report.ts'

const EVENT = { kind: 'Event', metadata: { name: 'a', resourceVersion: '<rv>' } }
const READ: Step = { method: 'GET', path: '/e/a?rv=@{rv}', answer: { status: 200, json: EVENT } }

/** Sends the given responses, and records the requests. */
class Script {
  readonly sent: Outgoing[] = []
  atOnceMax = 0
  private atOnce = 0
  private readonly answer: (outgoing: Outgoing) => Answer

  constructor(answer: (outgoing: Outgoing) => Answer = () => rightAnswer(READ)) {
    this.answer = answer
  }

  async send(outgoing: Outgoing): Promise<Answer> {
    this.sent.push(outgoing)
    this.atOnceMax = Math.max(this.atOnceMax, ++this.atOnce)
    await Promise.resolve()
    this.atOnce--
    return this.answer(outgoing)
  }
}

function playSteps(
  client: Player['client'],
  steps: readonly Step[],
  suite = 'made-up',
): Promise<readonly Result[]> {
  const recording: Recording = { suite, about: '', steps }
  return play(recording, { client, token: 'secret', run: 'k3x9' })
}

describe('play', () => {
  test('fills in the namespace, saved values, and long generated texts', async () => {
    const client = new Script()
    await playSteps(client, [
      { ...READ, method: 'PUT', path: '/@{ns}', save: { rv: 'metadata.resourceVersion' } },
      { ...READ, method: 'PUT', body: { name: '@{x*5}' } },
      { ...READ, method: 'PATCH', raw: '@{ops*2}', headers: { 'content-type': 'a/b' } },
    ])
    assert.deepEqual(
      client.sent.map(({ path, payload }) => ({ path, payload })),
      [
        { path: '/c-made-up-k3x9', payload: undefined },
        { path: '/e/a?rv=17003', payload: '{"name":"xxxxx"}' },
        {
          path: '/e/a?rv=17003',
          payload: JSON.stringify(
            [1, 2].map(() => ({ op: 'test', path: '/reason', value: 'Scheduled' })),
          ),
        },
      ],
    )
    assert.deepEqual(
      client.sent.map(({ headers }) => headers),
      [
        { authorization: 'Bearer secret' },
        { authorization: 'Bearer secret', 'content-type': 'application/json' },
        { authorization: 'Bearer secret', 'content-type': 'a/b' },
      ],
    )
  })

  test('sends the credentials of the step, or none if it says so', async () => {
    const client = new Script()
    await playSteps(client, [
      { ...READ, authorization: 'Bearer other' },
      { ...READ, authorization: '' },
    ])
    assert.deepEqual(
      client.sent.map(({ headers }) => headers['authorization']),
      ['Bearer other', undefined],
    )
  })

  test('reads are sent together, but never past a write or a read that saves something', async () => {
    const client = new Script()
    const write: Step = { ...READ, method: 'POST' }
    const saving: Step = { ...READ, save: { c: 'metadata.continue' } }
    const results = await playSteps(client, [READ, READ, write, saving, READ, READ, READ, write])
    assert.equal(client.atOnceMax, 3)
    assert.deepEqual(
      results.map(({ index }) => index),
      [0, 1, 2, 3, 4, 5, 6, 7],
    )
  })

  test('waits for the lines of a stream unless the server is to end it', async () => {
    const client = new Script()
    const answer = { status: 200, frames: [EVENT, EVENT] }
    await playSteps(client, [
      { ...READ, watchMs: 700, answer },
      { ...READ, watchMs: 700, answer: { ...answer, ends: true } },
    ])
    assert.deepEqual(
      client.sent.map(({ watchMs, framesExpected }) => ({ watchMs, framesExpected })),
      [
        { watchMs: 700, framesExpected: 2 },
        { watchMs: 700, framesExpected: undefined },
      ],
    )
  })

  test('reports differences, and missing responses', async () => {
    let turn = 0
    const client = new Script(() => {
      if (turn++ === 0) return { ...rightAnswer(READ), status: 404 }
      throw new Error('connection reset')
    })
    const results = await playSteps(client, [
      { ...READ, save: { rv: 'metadata.resourceVersion' } },
      READ,
    ])
    assert.deepEqual(
      results.map(({ wrong }) => wrong),
      [['status 404, wanted 200'], ['no response: connection reset']],
    )
    assert.equal(describeSuite('made-up', results), 'FAIL made-up           0/2')
    assert.deepEqual(
      results.map((result) => describeResult('made-up', result)),
      [
        'made-up[0] GET /e/a?rv=@{rv}\n    status 404, wanted 200',
        'made-up[1] GET /e/a?rv=@{rv}\n    no response: connection reset',
      ],
    )
  })

  test('a report shows only the unusual fields of an Event that was sent', () => {
    const body = { type: 'Info', reportingController: 'example.com/scheduler', kind: 'Event' }
    const step: Step = { ...READ, method: 'POST', path: '/apis/g/v1/namespaces/@{ns}/events', body }
    assert.equal(
      describeResult('made-up', { index: 3, step, wrong: ['no'] }),
      'made-up[3] POST …/events Event {"type":"Info"} without apiVersion, eventTime, action, reason, reportingInstance, regarding, note\n    no',
    )
  })
})
