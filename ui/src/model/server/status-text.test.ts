import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Known, stateText } from './status-text.ts'

const nothing: Known = { checks: undefined, checksCode: undefined, atMs: undefined, isAway: false }

function told(known: Partial<Known>): string {
  const { level, title, meaning } = stateText({ ...nothing, ...known }, (ms) => `T${ms}`)
  return `${level}: ${title}. ${meaning}`
}

test('a server whose checks pass is ready', () => {
  assert.equal(told({ checks: [{ name: 'ping', isOk: true }] }), 'ok: Ready. ')
})

test('a failing check is named, with what it means', () => {
  assert.equal(
    told({ checks: [{ name: 'datastore', isOk: false }] }),
    'problem: etcd does not respond (check datastore). ' +
      'Events written now are not stored. What is shown is what this replica has in memory.',
  )
  assert.match(
    told({ checks: ['log', 'datastore', 'x'].map((name) => ({ name, isOk: false })) }),
    /in memory\. Also failing: log, x\.$/,
  )
})

test('a server that does not respond is a problem, one that hides its state is not', () => {
  assert.match(told({ isAway: true, atMs: 7 }), /^problem: .* since T7\. /)
  assert.match(told({ isAway: true }), /Nothing new is shown\. /)
  assert.match(told({ checksCode: 403 }), /^unknown: .*\(403\)\.$/)
  assert.match(told({ checksCode: 502 }), /^problem: .*502\.$/)
  assert.match(told({}), /^unknown: Asking/)
})
