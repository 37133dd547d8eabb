/** The notes after an installation: what comes next, and what is missing or unsafe. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { chart, helm, notesOf } from '../../support/chart.ts'

const ETCD = 'etcd: {endpoints: ["http://etcd:2379"]}'

describe('the notes', { concurrency: 3 }, () => {
  test('warn of all that is unsafe in a trial, and have three steps', async () => {
    const notes = await notesOf('etcd: {endpoints: [], trial: {enabled: true, image: x}}')
    assert.match(notes, /^1\. Wait[\s\S]*^2\. Make[\s\S]*^3\. Read/m)
    assert.match(notes, /THE ETCD FOR TRIALS IS ON\. ALL EVENTS ARE LOST when its pod is replaced/)
    assert.match(notes, /localhost\/tidings:\S+ is in no registry/)
    assert.match(notes, /self-signed/)
    assert.match(notes, /No client can authenticate/)
  })

  test('name nothing missing or unsafe in a complete installation', async () => {
    const values = ['-f', `${chart}/ci/production.yaml`]
    const { stdout } = await helm(['install', 'tidings', chart, '--dry-run=client', ...values])
    const notes = stdout.slice(stdout.indexOf('\nNOTES:'))
    assert.match(notes, /rollout status deployment\/tidings/)
    assert.doesNotMatch(notes, /Missing or unsafe/)
  })

  test('warn of a history that replicas cannot share, or that others can read', async () => {
    const volume = 'history: {url: file:///history, volume: {existingClaim: c}}'
    assert.match(await notesOf(`{${ETCD}, ${volume}}`), /the claim c, .*must be ReadWriteMany/)
    const one = 'replicas: 1, updateStrategy: {type: Recreate}'
    assert.doesNotMatch(await notesOf(`{${ETCD}, ${volume}, ${one}}`), /ReadWriteMany/)
    const plain = 'history: {url: s3://bucket, s3: {endpoint: "http://minio:9000"}}'
    assert.match(await notesOf(`{${ETCD}, ${plain}}`), /history\.s3\.endpoint is http/)
  })

  test('have the commands that open the page', async () => {
    const notes = await notesOf(`{${ETCD}}`)
    const port = /port-forward service\/\S+ (\d+):443/.exec(notes)?.[1]
    assert.match(
      notes,
      new RegExp(`kubectl --server=https://localhost:${port} .* proxy --port=8001`),
    )
    assert.match(notes, /^4\. .*http:\/\/127\.0\.0\.1:8001\/ui\//m)
    assert.ok(notes.includes(`https://localhost:${port}/ui/`))
    assert.doesNotMatch(notes, /create token/)
    const off = await notesOf(`{${ETCD}, ui: {enabled: false}}`)
    assert.doesNotMatch(off, /\/ui\/|proxy/)
  })

  test('say that tokens of the cluster are valid where they are', async () => {
    const notes = await notesOf(`{${ETCD}, ownCluster: {authorization: origin}}`)
    assert.match(notes, /TOKEN=\$\(kubectl -n \S+ create token NAME\)/)
  })

  test('say where the private key of a self-signed certificate can be read', async () => {
    const notes = await notesOf(`{${ETCD}}`)
    assert.match(notes, /private key is in every revision .*helm template prints it.*--hide-secret/)
    const other = await notesOf(`{${ETCD}, tls: {type: existingSecret, existingSecret: x}}`)
    assert.doesNotMatch(other, /--hide-secret/)
  })

  for (const path of ['/metrics', '/metrics*', '/m*', '/*']) {
    test(`warn of metrics that ${path} opens`, async () => {
      const notes = await notesOf(`{${ETCD}, openPaths: [/livez, /readyz, "${path}"]}`)
      assert.match(notes, /can read \/metrics/)
    })
  }

  for (const flag of [
    '--authorization-mode=AlwaysAllow',
    '--authorization_mode=RBAC,AlwaysAllow',
  ]) {
    test(`warn of ${flag}`, async () => {
      const notes = await notesOf(`{${ETCD}, extraArgs: ['${flag}']}`)
      assert.match(notes, /--authorization-mode has AlwaysAllow/)
    })
  }

  test('a flag for authentication is known with underscores too, and not inside of a value', async () => {
    const known = await notesOf(`{${ETCD}, extraArgs: [--client_ca_file=/x]}`)
    assert.doesNotMatch(known, /No client can authenticate/)
    const other = await notesOf(`{${ETCD}, extraArgs: [--events-group=--client-ca-file]}`)
    assert.match(other, /No client can authenticate/)
  })
})
