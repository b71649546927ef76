//! A cache with a bound, and a price for each entry.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How an entry left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Expired,
    Evicted,
    Removed,
}

struct Slot<V> {
    value: V,
    price: usize,
    until: Instant,
}

/// A cache.
pub struct Cache<K, V> {
    slots: HashMap<K, Slot<V>>,
    order: Vec<K>,
    limit: usize,
    spent: usize,
    lifetime: Duration,
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    pub fn new(limit: usize, lifetime: Duration) -> Self {
        Self { slots: HashMap::new(), order: Vec::new(), limit, spent: 0, lifetime }
    }

    pub fn get(&mut self, key: &K) -> Option<&V> {
        let now = Instant::now();
        let expired = self.slots.get(key).is_some_and(|slot| slot.until <= now);
        if expired {
            self.take(key, Gone::Expired);
            return None;
        }
        self.slots.get(key).map(|slot| &slot.value)
    }

    pub fn put(&mut self, key: K, value: V, price: usize) -> Result<(), usize> {
        if price > self.limit {
            return Err(price - self.limit);
        }
        while self.spent + price > self.limit {
            let oldest = self.order[0].clone();
            self.take(&oldest, Gone::Evicted);
        }
        let until = Instant::now() + self.lifetime;
        self.order.retain(|known| *known != key);
        self.order.push(key.clone());
        if let Some(old) = self.slots.insert(key, Slot { value, price, until }) {
            self.spent -= old.price;
        }
        self.spent += price;
        Ok(())
    }

    pub fn remove(&mut self, key: &K) -> bool {
        self.take(key, Gone::Removed)
    }

    fn take(&mut self, key: &K, how: Gone) -> bool {
        let Some(slot) = self.slots.remove(key) else {
            return false;
        };
        self.spent -= slot.price;
        self.order.retain(|known| known != key);
        if how == Gone::Expired {
            eprintln!("an entry of price {} expired", slot.price);
        }
        true
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_lets_the_oldest_go() {
        let mut cache = Cache::new(10, Duration::from_secs(60));
        cache.put("one", 1, 6).unwrap();
        cache.put("two", 2, 6).unwrap();
        assert_eq!(cache.get(&"one"), None);
        assert_eq!(cache.get(&"two"), Some(&2));
    }

    #[test]
    fn what_is_too_dear_is_refused() {
        let mut cache = Cache::new(10, Duration::from_secs(60));
        assert_eq!(cache.put("big", 0, 12), Err(2));
        assert!(cache.is_empty());
    }
}