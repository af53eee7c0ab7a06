import { test } from 'node:test'
import express from 'express'
import { expressConformance } from './express.ts'

expressConformance(express, (name, body) => test(name, body))
