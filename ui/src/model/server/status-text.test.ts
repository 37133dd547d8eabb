import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Known, stateText } from './status-text.ts'

const nothing: Known = { checks: undefined, checksCode: undefined, atMs: undefined, isAway: false }

function textOf(known: Partial<Known>): string {
  const { level, title, meaning } = stateText({ ...nothing, ...known }, (ms) => `T${ms}`)
  return `${level}: ${title}. ${meaning}`
}

test('reports ready when all checks pass', () => {
  assert.equal(textOf({ checks: [{ name: 'ping', isOk: true }] }), 'ok: Ready. ')
})

test('names a failing check and says what it means', () => {
  assert.equal(
    textOf({ checks: [{ name: 'datastore', isOk: false }] }),
    'problem: etcd does not respond (check datastore). ' +
      'Events written now are not stored. What is shown is what this replica has in memory.',
  )
  assert.match(
    textOf({ checks: ['log', 'datastore', 'x'].map((name) => ({ name, isOk: false })) }),
    /in memory\. Also failing: log, x\.$/,
  )
})

test('treats silence as a problem, but not a hidden state', () => {
  assert.match(textOf({ isAway: true, atMs: 7 }), /^problem: .* since T7\. /)
  assert.match(textOf({ isAway: true }), /Nothing new is shown\. /)
  assert.match(textOf({ checksCode: 403 }), /^unknown: .*\(403\)\.$/)
  assert.match(textOf({ checksCode: 502 }), /^problem: .*502\.$/)
  assert.match(textOf({}), /^unknown: Contacting/)
})
