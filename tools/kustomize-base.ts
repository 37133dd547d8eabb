/**
 * Renders deploy/base/tidings.yaml from charts/tidings and deploy/base/values.yaml, so that chart and
 * base are one source: `node tools/kustomize-base.ts`. It needs helm (`npm run tools -- helm`).
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const HEAD = `# Made by tools/kustomize-base.ts from charts/tidings and values.yaml; edit those, then run it.\n`
/** Lines that are true of objects of a Helm release only. */
const OF_HELM = /^ *(?:helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n|^# Source: .*\n/gm

/** The path of the rendered file. */
export const basePath: string = join(root, 'deploy/base/tidings.yaml')

export function renderBase(): string {
  const values = join(root, 'deploy/base/values.yaml')
  const chart = join(root, 'charts/tidings')
  const args = ['template', 'tidings', chart, '--namespace', 'tidings', '-f', values]
  const text = execFileSync(join(root, '.cache/helm/helm'), args, { encoding: 'utf8' })
  return HEAD + text.replaceAll(OF_HELM, '')
}

if (import.meta.main) writeFileSync(basePath, renderBase())
