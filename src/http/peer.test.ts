import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { isLoopbackAddress, peerOf } from './peer.ts'

for (const address of ['127.0.0.1', '127.255.3.9', '::1', '::ffff:127.0.0.1', '::ffff:127.9.9.9']) {
  test(`peer: ${address} is this host`, () => {
    assert.ok(isLoopbackAddress(address))
  })
}

for (const address of [
  '',
  '10.0.0.1',
  '128.0.0.1',
  '1.127.0.0',
  '0127.0.0.1',
  '127.0.0.1.example.org',
  'x127.0.0.1',
  '127.1',
  '::',
  '::2',
  '::1:1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  'fe80::1',
  'localhost',
]) {
  test(`peer: '${address}' is not this host`, () => {
    assert.ok(!isLoopbackAddress(address))
  })
}

test('peer: a connection without an address is a stranger without a certificate', () => {
  const peer = peerOf(new Socket())
  assert.equal(peer.address, '')
  assert.equal(peer.isLoopback, false)
  assert.equal(peer.clientCertificate(), undefined)
})

for (const [what, isAuthorized, isReused, expected] of [
  ['a verified certificate is shown', true, false, { isVerified: true }],
  ['one that was not verified is shown as such', false, false, { isVerified: false }],
  ['one of a resumed connection is not shown', true, true, undefined],
  ['one that is neither is not shown', false, true, undefined],
] as const) {
  test(`peer: ${what}`, () => {
    const issuer = {}
    const leaf = { issuerCertificate: issuer }
    const socket = new TLSSocket(new Socket())
    socket.authorized = isAuthorized
    Object.assign(socket, {
      isSessionReused: () => isReused,
      getPeerX509Certificate: () => leaf,
    })
    const peer = peerOf(socket)
    // What was true of the connection stays true of the request, also when it is gone.
    Object.assign(socket, { getPeerX509Certificate: () => assert.fail('asked too late') })
    const shown = peer.clientCertificate()
    assert.equal(shown?.isVerified, expected?.isVerified)
    assert.equal(shown?.leaf, expected && leaf)
    assert.deepEqual(shown?.intermediates, expected && [issuer])
  })
}
