import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Http2Session } from 'node:http2'
import { describe, test } from 'node:test'
import { DEFAULT_LIMITS } from './limits.ts'
import { Sessions } from './sessions.ts'

const { headersTimeoutMs, idleTimeoutMs, handshakeTimeoutMs } = DEFAULT_LIMITS
const { controlFramesPerTenSeconds, refusedStreamsMax } = DEFAULT_LIMITS

/** Remembers what was done to it, in order. */
class FakeSession extends EventEmitter {
  readonly calls: string[] = []
  readonly state = { lastProcStreamID: 5 }

  setLocalWindowSize(size: number): void {
    this.calls.push(`window ${size}`)
  }

  goaway(code: number, lastStream?: number): void {
    this.calls.push(`goaway ${code} ${lastStream}`)
  }

  close(): void {
    this.calls.push('close')
  }

  destroy(_error?: Error, code?: number): void {
    this.calls.push(`destroy ${code}`)
  }
}

class Setting {
  now = 1000
  readonly sessions: Sessions = new Sessions(DEFAULT_LIMITS, { now: () => this.now })

  add(): { fake: FakeSession; session: Http2Session } {
    const fake = new FakeSession()
    const session = fake as unknown as Http2Session
    const socket = { destroy: (): unknown => fake.calls.push('cut') }
    this.sessions.add(session, socket)
    fake.emit('localSettings')
    fake.calls.length = 0
    return { fake, session }
  }

  /** Lets time pass as the listener does, looking once a second. */
  pass(ms: number): void {
    const end = this.now + ms
    while (this.now < end) {
      this.now = Math.min(this.now + 1000, end)
      this.sessions.sweep()
    }
  }
}

describe('sessions', () => {
  test('a new one gets the connection window and is counted until it closes', () => {
    const setting = new Setting()
    const fake = new FakeSession()
    setting.sessions.add(fake as unknown as Http2Session, { destroy: () => {} })
    assert.deepEqual(fake.calls, [`window ${DEFAULT_LIMITS.connectionWindowBytes}`])
    assert.equal(setting.sessions.size, 1)
    fake.emit('close')
    assert.equal(setting.sessions.size, 0)
  })

  test('one that never asks is closed at the headers limit, and cut if it stays', () => {
    const setting = new Setting()
    const { fake } = setting.add()
    setting.pass(headersTimeoutMs - 1)
    assert.deepEqual(fake.calls, [])
    setting.pass(1)
    assert.deepEqual(fake.calls, ['close'])
    setting.pass(1000)
    assert.deepEqual(fake.calls, ['close', 'cut'])
  })

  test('one that goes when asked is not cut', () => {
    const setting = new Setting()
    const { fake } = setting.add()
    setting.pass(headersTimeoutMs)
    fake.emit('close')
    setting.pass(10_000)
    assert.deepEqual(fake.calls, ['close'])
  })

  test('one that has been served has until the idle limit, from its last request on', () => {
    const setting = new Setting()
    const { fake, session } = setting.add()
    setting.sessions.streamOpened(session, 1)
    setting.pass(10_000)
    setting.sessions.streamClosed(session)
    setting.pass(idleTimeoutMs - 1)
    assert.deepEqual(fake.calls, [])
    setting.pass(1)
    assert.deepEqual(fake.calls, ['close'])
  })

  test('one with a request under way is never idle', () => {
    const setting = new Setting()
    const { fake, session } = setting.add()
    setting.sessions.streamOpened(session, 1)
    setting.sessions.streamOpened(session, 1)
    setting.sessions.streamClosed(session)
    setting.pass(10 * idleTimeoutMs)
    assert.deepEqual(fake.calls, [])
  })

  for (const event of ['ping', 'remoteSettings']) {
    test(`too many ${event} frames within ten seconds end it`, () => {
      const setting = new Setting()
      const { fake } = setting.add()
      for (let n = 0; n < controlFramesPerTenSeconds; n += 1) fake.emit(event)
      assert.deepEqual(fake.calls, [])
      fake.emit(event)
      assert.deepEqual(fake.calls, ['destroy 11'])
      // Should the goodbye not get through to a client that reads nothing.
      setting.pass(1000)
      assert.deepEqual(fake.calls, ['destroy 11', 'cut'])
    })
  }

  test('control frames at a decent pace are welcome for ever', () => {
    const setting = new Setting()
    const { fake, session } = setting.add()
    setting.sessions.streamOpened(session, 1)
    for (let second = 0; second < 100; second += 1) {
      for (let n = 0; n < controlFramesPerTenSeconds / 10; n += 1) fake.emit('ping')
      setting.pass(1000)
    }
    assert.deepEqual(fake.calls, [])
  })

  test('more streams than a few that never reached us end it, however slowly looked at', () => {
    const setting = new Setting()
    const { fake, session } = setting.add()
    setting.sessions.streamOpened(session, 1)
    fake.state.lastProcStreamID = 2 * refusedStreamsMax + 1
    setting.sessions.sweep()
    assert.deepEqual(fake.calls, [])
    fake.state.lastProcStreamID += 2
    setting.sessions.sweep()
    assert.deepEqual(fake.calls, ['destroy 11'])
    setting.pass(1000)
    assert.deepEqual(fake.calls, ['destroy 11', 'cut'])
  })

  test('now and then a stream that never reached us is nothing, for ever', () => {
    const setting = new Setting()
    const { fake, session } = setting.add()
    setting.sessions.streamOpened(session, 1)
    for (let second = 0; second < 1000; second += 1) {
      fake.state.lastProcStreamID += 2 * Math.floor(refusedStreamsMax / 11)
      setting.pass(1000)
    }
    assert.deepEqual(fake.calls, [])
  })

  test('streams we refused ourselves at the end are not held against anybody', () => {
    const setting = new Setting()
    const { fake } = setting.add()
    setting.sessions.announceEnd()
    fake.calls.length = 0
    fake.state.lastProcStreamID = 10_001
    setting.pass(1000)
    assert.deepEqual(fake.calls, [])
  })

  describe('that have not acknowledged our settings', () => {
    function unsettled(setting: Setting): FakeSession {
      const fake = new FakeSession()
      const socket = { destroy: (): unknown => fake.calls.push('cut') }
      setting.sessions.add(fake as unknown as Http2Session, socket)
      fake.calls.length = 0
      return fake
    }

    test('end when they take longer than for a handshake', () => {
      const setting = new Setting()
      const fake = unsettled(setting)
      const other = unsettled(setting)
      other.emit('localSettings')
      setting.now += handshakeTimeoutMs - 1
      setting.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, [])
      setting.now += 1
      setting.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, ['destroy 4'])
      setting.pass(1000)
      assert.deepEqual(fake.calls, ['destroy 4', 'cut'])
      assert.deepEqual(other.calls, [])
    })

    test('end at once when more than ten of their streams never reached us', () => {
      const setting = new Setting()
      const fake = unsettled(setting)
      fake.state.lastProcStreamID = 2 * 10 - 1
      setting.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, [])
      fake.state.lastProcStreamID += 2
      setting.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, ['destroy 11'])
    })

    test('are forgotten when they close', () => {
      const setting = new Setting()
      const fake = unsettled(setting)
      fake.emit('close')
      setting.now += handshakeTimeoutMs
      setting.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, [])
    })
  })

  test('an error ends the session it belongs to', () => {
    const setting = new Setting()
    const one = setting.add()
    const two = setting.add()
    one.fake.emit('error', new Error('reset'))
    assert.deepEqual(one.fake.calls, ['destroy undefined'])
    assert.deepEqual(two.fake.calls, [])
  })

  test('the end is announced to all, then all are closed', () => {
    const setting = new Setting()
    const { fake } = setting.add()
    setting.sessions.announceEnd()
    assert.deepEqual(fake.calls, ['goaway 0 5'])
    setting.sessions.close()
    assert.deepEqual(fake.calls, ['goaway 0 5', 'close'])
  })

  test('after the announcement no stream beyond the one it named is served', () => {
    const setting = new Setting()
    const { session } = setting.add()
    assert.ok(setting.sessions.streamOpened(session, 3))
    setting.sessions.announceEnd()
    assert.ok(setting.sessions.streamOpened(session, 5), 'it is under way to us')
    assert.ok(!setting.sessions.streamOpened(session, 7))
  })

  test('one that arrives after the announcement is closed', () => {
    const setting = new Setting()
    setting.sessions.announceEnd()
    const fake = new FakeSession()
    setting.sessions.add(fake as unknown as Http2Session, { destroy: () => {} })
    assert.equal(fake.calls.at(-1), 'close')
  })
})
