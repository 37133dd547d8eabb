import type { Random } from '../../../support/random.ts'
import { Members, Raw, type Tree, treeText } from '../tree.ts'
import { hostileText } from './values.ts'

const LINES = [
  '---',
  '...',
  '--- # another',
  '%YAML 1.2',
  '%TAG ! tag:example.com,2026:',
  '\tmetadata: x',
  '<<: *a',
  '<<: [*a, *a]',
  'labels: &a {b: *a}',
  '? [complex, key]',
  ': value',
  '- entry',
  '!!binary aGk=',
  '!!set {a, b}',
  '!<tag:yaml.org,2002:js/function> x',
  'a: |',
  'a: >+2',
  'a: !!int "x"',
  '# comment',
  '*unknown',
  '&anchor',
  "a: 'open",
  'a: "open',
  'a: [open',
  'a: {open',
  '\u0085',
  '\ufeff',
  '@reserved',
] as const

/** A tree as YAML, in one of the styles of YAML. */
export function yamlText(random: Random, tree: Tree): string {
  const text = random.chance(0.8) ? blockText(random, tree, '') : treeText(tree)
  const lines = text.split('\n')
  for (let count = random.chance(0.3) ? 1 + random.below(3) : 0; count > 0; count--) {
    const margin = ' '.repeat(random.below(5))
    lines.splice(random.below(lines.length + 1), 0, margin + random.pick(LINES))
  }
  return lines.join(random.chance(0.05) ? '\r\n' : '\n')
}

function blockText(random: Random, tree: Tree, margin: string): string {
  if (Array.isArray(tree) && tree.length > 0) {
    const entries = tree.map((entry) => `${margin}- ${inline(random, entry, `${margin}  `)}`)
    return `${anchor(random, margin)}${entries.join('\n')}`
  }
  if (!(tree instanceof Members) || tree.entries.length === 0) return margin + treeText(tree)
  return tree.entries
    .map(([name, value]) => {
      const shown = /^[a-z]+$/i.test(name) ? name : JSON.stringify(name)
      if (isBranch(value)) return `${margin}${shown}:\n${blockText(random, value, `${margin}  `)}`
      return `${margin}${shown}: ${inline(random, value, `${margin}  `)}`
    })
    .join('\n')
}

function isBranch(tree: Tree): boolean {
  return tree instanceof Members ? tree.entries.length > 0 : Array.isArray(tree) && tree.length > 0
}

function anchor(random: Random, margin: string): string {
  return random.chance(0.02) ? `${margin}&a\n` : ''
}

function inline(random: Random, value: Tree, margin: string): string {
  if (typeof value !== 'string') {
    return value instanceof Raw || random.chance(0.9) ? treeText(value) : scalar(random)
  }
  switch (random.below(6)) {
    case 0:
      return value
    case 1:
      return `'${value}'`
    case 2:
      return `|\n${margin}${value.replaceAll('\n', `\n${margin}`)}`
    case 3:
      return `&b ${JSON.stringify(value)}`
    default:
      return JSON.stringify(value)
  }
}

function scalar(random: Random): string {
  return random.pick([
    'yes',
    'off',
    '0755',
    '0x1f',
    '1_000',
    '.inf',
    '.nan',
    '~',
    '*b',
    '1:30',
    hostileText(random),
  ])
}
