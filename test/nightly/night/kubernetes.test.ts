/** The recorded night at a real Kubernetes API server, which a mirror follows meanwhile. */
import assert from 'node:assert/strict'
import { basename } from 'node:path'
import { test } from 'node:test'
import { EventClient } from '../../support/event-client.ts'
import { anyKubeApiserver, KUBE_ADMIN_TOKEN, KubeApiserver } from '../../support/kube-apiserver.ts'
import { MIRRORED, NightSite, whyNotNight } from '../../support/night-site.ts'
import { nightWrites, oldRecorder, play } from '../../support/night-writes.ts'
import { recordedNight } from '../../support/recorded-night.ts'
import { testSeed } from '../../support/seed.ts'

const NOISE = 20_000
const whyNot =
  anyKubeApiserver === '' && 'did NOT run: there is no .cache/servers/kube-apiserver-<version>'

test('a night is counted exactly as it was by a mirror of a Kubernetes', {
  skip: whyNot || whyNotNight,
}, async (t) => {
  const seed = testSeed()
  t.diagnostic(`seed ${seed}, ${basename(anyKubeApiserver)}`)
  await using origin = await KubeApiserver.start({ binary: anyKubeApiserver })
  await using site = await NightSite.start(origin.kubeconfig(KUBE_ADMIN_TOKEN))
  const { port, ca } = origin
  using client = await EventClient.open({ port, ca, token: KUBE_ADMIN_TOKEN })
  const night = recordedNight({ seed, noise: NOISE, nowMs: Date.now() })
  await play(nightWrites(night, oldRecorder), [client])
  await site.untilCopied(night.events)
  for (const { estimated, misplaced } of await site.check(t, night, MIRRORED)) {
    assert.deepEqual([estimated, misplaced], [0, 0])
  }
})
