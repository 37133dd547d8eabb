import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { eventually } from '../../support/eventually.ts'
import { WrongClock } from '../../support/wrong-clock.ts'
import { PREFIX, Site } from '../clocks/site.ts'
import { AgeWatcher } from '../clocks/watcher.ts'

describe('clocks', () => {
  test('a replica two hours ahead that becomes the sweeper deletes no young event, and logs why', async () => {
    await using site = await Site.start(['--event-ttl=1h'])
    await using clock = await WrongClock.make('+2h')
    const right = site.replica()
    const ahead = site.replica(clock)
    await right.start()
    await using watcher = new AgeWatcher(site.etcd.endpoints, PREFIX, 3_600_000)
    const names = Array.from({ length: 300 }, (_, at) => `young-${at}`)
    for (let at = 0; at < names.length; at += 25) {
      const created = await Promise.all(names.slice(at, at + 25).map((name) => right.create(name)))
      assert.ok(created.every((isCreated) => isCreated))
    }
    await eventually('all events are seen in etcd', () => watcher.verdict().written === 300, 10_000)
    await right.kill()
    await ahead.start()
    await eventually('it sweeps', () => ahead.isSweeping, 20_000)
    await pause(8_000)
    assert.equal(watcher.verdict().left, 300)
    assert.match(ahead.warnings.join('\n'), /more time has passed .* than can be proved/)
    const warning = ahead.log.find(({ msg }) => /can be proved/.test(msg))
    assert.ok(Math.abs(Number(warning?.['claimedSeconds']) - 7_200) < 120, JSON.stringify(warning))
    assert.ok(Number(warning?.['provedSeconds']) < 120, JSON.stringify(warning))
  })
})
