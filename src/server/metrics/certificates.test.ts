import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { ClientAuthority } from '../../../test/support/client-certs.ts'
import { registerCertificateMetrics } from './certificates.ts'

const endOf = (pem: string): number => new X509Certificate(pem).validToDate.getTime() / 1000

test('each flag has the expiry of the certificate in use that expires first', async () => {
  const early = await ClientAuthority.create('early', { endsInMs: 60_000 })
  const late = await ClientAuthority.create('late', { endsInMs: 600_000 })
  const registry = new Registry()
  let inUse: string | undefined
  registerCertificateMetrics(registry, () => [
    { flag: '--client-ca-file', pem: () => `${late.cert}\n${early.cert}` },
    { flag: '--etcd-certfile', pem: () => inUse },
    { flag: '--oidc-ca-file', pem: () => 'nothing that can be read' },
  ])
  const shown = async (): Promise<readonly string[]> =>
    (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  const name = 'tidings_certificate_expiration_timestamp_seconds'
  const clientCa = `${name}{flag="--client-ca-file"} ${endOf(early.cert)}`
  assert.deepEqual(await shown(), [clientCa])
  inUse = early.cert
  assert.deepEqual(await shown(), [
    clientCa,
    `${name}{flag="--etcd-certfile"} ${endOf(early.cert)}`,
  ])
  inUse = late.cert
  assert.deepEqual(await shown(), [clientCa, `${name}{flag="--etcd-certfile"} ${endOf(late.cert)}`])
})
