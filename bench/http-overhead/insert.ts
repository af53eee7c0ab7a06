export const CREATE = 'CREATE TABLE orders (order_id text PRIMARY KEY, request bigint, cents integer NOT NULL)'

export const INSERT = { name: 'order', text: 'INSERT INTO orders (order_id, request, cents) VALUES ($1, $2, $3)' }
