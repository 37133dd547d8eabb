import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MemberStatus } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import { isGoodEtcdVersion, StatusLog } from './member-statuses.ts'

function statusOf(endpoint: string, changes: Partial<MemberStatus> = {}): MemberStatus {
  return {
    endpoint,
    version: '3.6.14',
    dbBytes: 1,
    dbBytesInUse: 1,
    memberId: 1n,
    leader: 1n,
    revision: 1,
    raftTerm: 1,
    isLearner: false,
    errors: [],
    storageVersion: '3.6.0',
    quotaBytes: 0,
    downgradeTo: undefined,
    ...changes,
  }
}

function start() {
  const lines: string[] = []
  const note = (level: string) => (msg: string, fields?: LogFields) => {
    const shown = Object.entries(fields ?? {}).filter(([name]) => !['remedy', 'err'].includes(name))
    lines.push([`${level} ${msg}`, ...shown.map(([name, value]) => `${name}=${value}`)].join(' '))
  }
  const log = { ...silentLog, error: note('E'), warn: note('W'), info: note('I') }
  return { statusLog: new StatusLog(log), take: () => lines.splice(0) }
}

describe('the log of statuses', () => {
  test('has the version of each member once, and again when it changes', () => {
    const { statusLog, take } = start()
    statusLog.note([statusOf('a'), statusOf('b', { version: '3.6.8' })])
    const needed = '3.5.28, 3.6.9, 3.7.0 or newer is needed'
    assert.deepEqual(take(), [
      'I Connected to etcd endpoint=a version=3.6.14 dbBytes=1',
      `W This etcd has known consistency bugs; ${needed} endpoint=b version=3.6.8`,
    ])
    statusLog.note([statusOf('a', { dbBytes: 2 })])
    assert.deepEqual(take(), [])
    statusLog.note([statusOf('b', { version: '3.7.1' })])
    const changed =
      'I The version of an etcd member has changed endpoint=b version=3.7.1 before=3.6.8'
    assert.deepEqual(take(), [changed])
  })

  test('has the beginning and the end of a downgrade, whichever member responds', () => {
    const { statusLog, take } = start()
    const downgrading = { downgradeTo: '3.5.0', storageVersion: '3.5.0' }
    statusLog.note([statusOf('a'), statusOf('b')])
    take()
    statusLog.note([statusOf('a', downgrading), statusOf('b')])
    assert.deepEqual(take(), [
      'W etcd is being downgraded target=3.5.0 storageVersion=3.5.0 versions=a 3.6.14, b 3.6.14',
    ])
    statusLog.note([statusOf('b', downgrading)])
    statusLog.note([statusOf('a', { version: '3.5.30' }), statusOf('b', downgrading)])
    statusLog.note([])
    const changed =
      'I The version of an etcd member has changed endpoint=a version=3.5.30 before=3.6.14'
    assert.deepEqual(take(), [changed])
    // Member b was replaced by one at another address.
    statusLog.note([statusOf('a', { version: '3.5.30' })])
    assert.deepEqual(take(), ['I The downgrade of etcd is over versions=a 3.5.30'])
  })

  test('names the members whose data differs, until the alarm is off', () => {
    const { statusLog, take } = start()
    statusLog.note([statusOf('a'), statusOf('b')])
    take()
    const errors = ['memberID:10276657743932975437 alarm:CORRUPT ']
    for (let poll = 0; poll < 2; poll++) {
      statusLog.note([statusOf('a', { errors }), statusOf('b', { errors })])
    }
    const msg = 'etcd has found that the data of its members differs: it refuses writes'
    assert.deepEqual(take(), [`E ${msg} members=8e9e05c52164694d`])
    statusLog.note([])
    assert.deepEqual(take(), [])
    // Member a was replaced by one at another address.
    statusLog.note([statusOf('b')])
    assert.deepEqual(take(), ['I The corruption alarm of etcd is off'])
  })

  test('warns of a learner, and once of a member that refuses its status', () => {
    const { statusLog, take } = start()
    statusLog.note([statusOf('a')])
    take()
    for (let poll = 0; poll < 2; poll++) statusLog.note([statusOf('a', { isLearner: true })])
    const learner = 'W An etcd member is a learner, which serves no reads and no writes endpoint=a'
    assert.deepEqual(take(), [learner])
    const failure = (kind: EtcdError['kind']) => new EtcdError({ kind, message: 'x' })
    for (const kind of ['timeout', 'unauthenticated', 'unauthenticated'] as const) {
      statusLog.onFailure('a', failure(kind))
    }
    const refused = 'W Cannot read the status of an etcd member endpoint=a'
    assert.deepEqual(take(), [refused])
  })
})

test('isGoodEtcdVersion accepts 3.5.28, 3.6.9, 3.7.0 and later releases', () => {
  const good = ['3.5.28', '3.5.30', '3.5.100', '3.6.9', '3.6.10', '3.7.0-rc.0', '3.7.0', '4.0.0']
  for (const version of good) assert.equal(isGoodEtcdVersion(version), true, version)
  for (const version of [
    '3.5.27',
    '3.5.9',
    '3.4.100',
    '3.6.0',
    '3.6.8',
    '3.7.0-alpha.0',
    '2.9.99',
    '3.5',
    '',
    'unknown',
  ]) {
    assert.equal(isGoodEtcdVersion(version), false, version)
  }
})
