-- section: 20 Comparison Comparison
-- draw: comparison
SELECT 1
